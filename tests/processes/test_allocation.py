"""What CPU programs free is kept: a call of a large program takes no new pages from the system."""

import os
import platform
import subprocess
import sys

import pytest

pytestmark = pytest.mark.full  # each starts a process

PROGRAM = """
import resource
import xlamini.numpy as jnp
x = jnp.ones(10_000_000, jnp.float32)
def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    (x + x).block_until_ready()
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
print(min(faults() for _ in range(30)))
"""
PAGES = 40_000_000 // 4096


def faults_of_a_call(**environment: str) -> int:
    """How many page faults a call that makes 40 MB pays, in a fresh process."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    run = [sys.executable, "-c", PROGRAM]
    return int(subprocess.run(run, env=inherited | environment, capture_output=True, check=True, text=True).stdout)


glibc = pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="glibc has the settings")


@glibc
def test_a_call_takes_no_new_pages():
    assert faults_of_a_call() < PAGES // 20


@glibc
def test_with_the_flag_off_it_does():
    assert faults_of_a_call(XLAMINI_KEEP_FREED_MEMORY="0") > PAGES // 2


@glibc
def test_the_users_own_setting_is_left_alone():
    assert faults_of_a_call(MALLOC_TRIM_THRESHOLD_="131072") > PAGES // 2
