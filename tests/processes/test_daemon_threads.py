"""Processes that end while daemon threads compute: the exit code is 0, and they do not wait for what never ends."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

PROGRAM = """
import threading, time
import numpy as np
import xlamini
from xlamini import jit, numpy as jnp
x = jnp.ones(4)
double = jit(lambda x: x * 2 + 1)
compiled = double.lower(x).compile()
product = jit(lambda b: b @ b @ b)
large = jnp.ones((600, 600))
double(x), compiled(x), product(large)

def work():
    while True:
        {work}

for _ in range(2):
    threading.Thread(target=work, daemon=True).start()
time.sleep(0.3)
print("end")
"""
WORK = {
    "compiled anew": "jit(lambda x: jnp.sin(x) + 1)(1.0)",
    "called from C++": "double(x)",
    "called ahead of time": "compiled(x)",
    "operations": "jnp.cos(x) + 1",
    "derivatives": "xlamini.grad(lambda x: (x * x).sum())(x)",
    "transfers": "np.asarray(jnp.asarray(np.ones(3, np.float32)))",
    "long programs": "product(large).block_until_ready()",
    "nothing": "time.sleep(0.01)",
    "Python": "sum(range(1000))",
}


@pytest.mark.full
@pytest.mark.parametrize("name", WORK)
def test_the_process_ends(name: str) -> None:
    start = time.monotonic()
    program = [sys.executable, "-c", PROGRAM.format(work=WORK[name])]
    found = subprocess.run(program, capture_output=True, text=True, timeout=60)
    assert (found.returncode, found.stdout, found.stderr) == (0, "end\n", "")
    assert time.monotonic() - start < 25
