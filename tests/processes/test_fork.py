"""A process that forks while XLA has threads is warned, and its child raises rather than wait for ever."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

pytestmark = [
    pytest.mark.full,
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork"),
]

BEGIN = """
import os, signal, sys, warnings
import numpy as np
import xlamini, xlamini.numpy as jnp
from xlamini.errors import ForkError

def forked(program):
    sys.stdout.flush()
    child = os.fork()
    if not child:
        signal.alarm(20)
        try:
            print(program())
        except ForkError as error:
            print(type(error).__name__, "spawn" in str(error))
        sys.exit()
    assert os.waitpid(child, 0)[1] == 0

"""


def run(program: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", BEGIN + textwrap.dedent(program)],
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.splitlines()


def test_a_child_raises_whatever_its_parent_has_compiled() -> None:
    found = run("""
        f, x = xlamini.jit(lambda x: x * 2), jnp.ones(3)
        f(x), f(x), jnp.sin(x)
        compiled = f.lower(x).compile()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for program in (
                lambda: f(x),
                lambda: jnp.sin(x),
                lambda: compiled(x),
                lambda: xlamini.jit(lambda x: x + 5)(x),
                lambda: xlamini.grad(lambda x: (x * x).sum())(x),
                lambda: jnp.ones((300, 300)) @ jnp.ones((300, 300)),
                lambda: jnp.asarray(np.ones(100_000, np.float32)),
                lambda: xlamini.random.key(0),
            ):
                forked(program)
            forked(lambda: np.asarray(x).sum())
        (warning,) = caught
        assert warning.category is RuntimeWarning and "os.fork() was called" in str(warning.message)
        print(f(x).sum())
    """)
    assert found == ["ForkError True"] * 8 + ["3.0", "6.0"]


def test_a_child_of_a_process_without_devices_works() -> None:
    assert run("forked(lambda: (jnp.ones(3) + 1).sum())\nprint(jnp.ones(3).sum())") == ["6.0", "3.0"]
