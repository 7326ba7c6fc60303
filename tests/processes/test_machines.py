"""A core program gives the same values without what only some systems have, and on a console of another encoding.

Each profile runs in a process of its own, which takes things away before it imports xlamini.
"""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.processes import machine_profiles
from tests.support.paths import ROOT

VALUES = """\
jit: [2.5456]
grad: [[[1.0719, 0.8587], [1.2704, 1.0436], [1.4689, 1.2285]]]
vmap: [[0.0509, 0.3919, 0.8524, 1.2503]]
scan: [4.25, [0.0, 0.0, 1.0, 2.5]]
random: [[0.4512, 1.9535, -0.5162]]
jaxpr: ['{ lambda ; a:f32[]. let b:f32[] = sin a; c:f32[] = add b 1.0:f32[] in (c,) }']
callback: [0.5403]
printed 5
error: ['matmul: contracting dimensions differ: float32[4,3] has (3,) at (1,), float32[4,3] has (4,) at (0,); \
transpose the right operand (.T)']
cache: [2.6327]
cache: [2.6327]
cached: [True, True]
export: [[1.0, 2.7183]]
"""
LAST = {"[0] launched", "launch: [0]", "page: [True]", "doctor: [0]"}


def run(profile: str, folder: Path, **variables: str) -> str:
    environment = {**os.environ, "XLAMINI_PLATFORMS": "cpu", "PYTHONPATH": str(ROOT), **variables}
    command = [sys.executable, machine_profiles.__file__, profile, str(folder)]
    done = subprocess.run(command, env=environment, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr.decode("utf-8", "replace")[-3000:]
    return done.stdout.decode(variables.get("PYTHONIOENCODING", "utf-8"))


@pytest.mark.full
@pytest.mark.parametrize("profile", machine_profiles.PROFILES)
def test_the_core_runs_without(profile: str, tmp_path: Path) -> None:
    printed = run(profile, tmp_path, PYTHONIOENCODING="utf-8").replace("\r\n", "\n")
    assert printed.startswith(VALUES)
    assert set(printed.splitlines()) >= {*LAST, "a sign that cp1252 lacks: \u2603"}


@pytest.mark.full
def test_a_console_may_lack_signs(tmp_path: Path) -> None:
    printed = run("windows", tmp_path, PYTHONIOENCODING="cp1252", PYTHONUTF8="0").replace("\r\n", "\n")
    assert printed.startswith(VALUES)
    assert set(printed.splitlines()) >= {*LAST, "a sign that cp1252 lacks: \\u2603"}
