"""Ctrl-C ends a wait for a program that runs on."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap

import pytest

PROGRAM = """
    import os, signal, sys, threading, time
    import numpy as np, xlamini, xlamini.numpy as jnp
    from xlamini import lax

    def run(x, count):
        return lax.while_loop(lambda s: s[0] < count, lambda s: (s[0] + 1, jnp.tanh(s[1] @ s[1])), (0, x))[1]

    x, f = jnp.ones((200, 200)), xlamini.jit(run)
    f(x, 3).block_until_ready()
    running = f(x, 10**9)
    for read in (lambda y: y.block_until_ready(), xlamini.block_until_ready, lambda y: y.tolist(), repr):
        start = time.monotonic()
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
        try:
            read(running)
        except KeyboardInterrupt:
            print("interrupted", time.monotonic() - start < 10, running.is_ready())
    sys.stdout.flush()
    os._exit(0)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="signals are sent otherwise")
def test_ctrl_c_while_a_program_runs() -> None:
    command = [sys.executable, "-u", "-c", textwrap.dedent(PROGRAM)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=25)
    except subprocess.TimeoutExpired as error:
        if error.stdout:
            raise
        pytest.skip("XLA ran the program inside the call, where no signal reaches Python (docs/platforms.md)")
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.splitlines() == ["interrupted True False"] * 4
