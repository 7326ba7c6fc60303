"""Calls with odd sizes, that must give a result or a Python error: never a dead process, never one that hangs.

`python -m tests.support.odd_calls [NAME]` runs them all, or those of one function, each function in a process of its
own, and prints what became of them. The tests run several functions in one process.
"""

from __future__ import annotations

import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

SIZES = (0, 1, -1, 3, 2**40, 2**60, 2**62, 2**63 - 1, 2**63, -(2**62), -(2**63))
SECONDS = 120

Call = Callable[[Any, Any, Any, int], Any]

CALLS: dict[str, Call] = {
    # Shapes.
    "zeros": lambda jnp, lax, x, n: jnp.zeros(n),
    "full of two": lambda jnp, lax, x, n: lax.full((n, 3), 1, "int8"),
    "arange": lambda jnp, lax, x, n: jnp.arange(n),
    "arange in steps": lambda jnp, lax, x, n: jnp.arange(0, n, 2**58),
    "linspace": lambda jnp, lax, x, n: jnp.linspace(0, 1, n),
    "eye": lambda jnp, lax, x, n: jnp.eye(3, n),
    "tri": lambda jnp, lax, x, n: jnp.tri(3, 3, n),
    "iota": lambda jnp, lax, x, n: lax.iota("int32", n),
    "broadcast_to": lambda jnp, lax, x, n: jnp.broadcast_to(x, (n, 3)),
    "reshape": lambda jnp, lax, x, n: x.reshape(n, -1),
    "tile": lambda jnp, lax, x, n: jnp.tile(x, n),
    "repeat": lambda jnp, lax, x, n: jnp.repeat(x, n),
    "resize": lambda jnp, lax, x, n: jnp.resize(x, (n,)),
    "outer": lambda jnp, lax, x, n: jnp.outer(jnp.ones(n), x),
    "one_hot": lambda jnp, lax, x, n: (jnp.arange(3)[:, None] == jnp.arange(n)).astype("float32"),
    "vander": lambda jnp, lax, x, n: jnp.vander(x, n),
    "indices": lambda jnp, lax, x, n: jnp.indices((n, 2)),
    "bincount": lambda jnp, lax, x, n: jnp.bincount(jnp.arange(3), length=n),
    "histogram": lambda jnp, lax, x, n: jnp.histogram(x, n),
    "nonzero": lambda jnp, lax, x, n: jnp.nonzero(x, size=n),
    "unique": lambda jnp, lax, x, n: jnp.unique(x, size=n),
    # Places.
    "slice": lambda jnp, lax, x, n: x[n:],
    "slice in steps": lambda jnp, lax, x, n: x[:: n or 1],
    "lax.slice": lambda jnp, lax, x, n: lax.slice(x, (0,), (3,), (n,)),
    "grad of slice": lambda jnp, lax, x, n: _library().grad(lambda x: lax.slice(x, (0,), (3,), (n,)).sum())(x),
    "grad of window stride": lambda jnp, lax, x, n: _library().grad(
        lambda x: lax.reduce_window(x, 0.0, lax.add, (2,), (n,), "VALID").sum()
    )(x),
    "grad of conv stride": lambda jnp, lax, x, n: _library().grad(
        lambda x: _conv(jnp, lax, strides=(n,), image=x).sum()
    )(jnp.ones((1, 2, 5))),
    "grad of conv dilation": lambda jnp, lax, x, n: _library().grad(
        lambda x: _conv(jnp, lax, padding=[(n, n)], rhs_dilation=(n,), image=x).sum()
    )(jnp.ones((1, 2, 5))),
    "index": lambda jnp, lax, x, n: x[n],
    "index that is traced": lambda jnp, lax, x, n: x.at[n].set(1.0),
    "dynamic_slice": lambda jnp, lax, x, n: lax.dynamic_slice(x, (n,), (2,)),
    "dynamic_slice size": lambda jnp, lax, x, n: lax.dynamic_slice(x, (0,), (n,)),
    "dynamic_update_slice": lambda jnp, lax, x, n: lax.dynamic_update_slice(x, x[:1], (n,)),
    "roll": lambda jnp, lax, x, n: jnp.roll(x, n),
    "take": lambda jnp, lax, x, n: jnp.take(x, n),
    "split": lambda jnp, lax, x, n: jnp.split(x, n),
    "moveaxis": lambda jnp, lax, x, n: jnp.moveaxis(x, n, 0),
    "sum": lambda jnp, lax, x, n: jnp.sum(x, axis=n),
    "diff": lambda jnp, lax, x, n: jnp.diff(x, min(n, 50)),
    "top_k": lambda jnp, lax, x, n: lax.top_k(x, n),
    # Padding and windows.
    "pad": lambda jnp, lax, x, n: lax.pad(x, 0.0, [(n, 0, 0)]),
    "pad both": lambda jnp, lax, x, n: lax.pad(x, 0.0, [(n, -n, 0)]),
    "pad between": lambda jnp, lax, x, n: lax.pad(x, 0.0, [(0, 0, n)]),
    "numpy.pad": lambda jnp, lax, x, n: jnp.pad(x, n, mode="wrap"),
    "window": lambda jnp, lax, x, n: lax.reduce_window(x, 0.0, lax.add, (n,), (1,), "SAME"),
    "window stride": lambda jnp, lax, x, n: lax.reduce_window(x, 0.0, lax.add, (2,), (n,), "VALID"),
    "window dilation": lambda jnp, lax, x, n: lax.reduce_window(
        x, 0.0, lax.add, (2,), (1,), "VALID", window_dilation=(n,)
    ),
    "base dilation": lambda jnp, lax, x, n: lax.reduce_window(
        x, 0.0, lax.add, (2,), (1,), "VALID", base_dilation=(n,)
    ),
    "window padding": lambda jnp, lax, x, n: lax.reduce_window(x, -np.inf, lax.max, (2,), (1,), [(n, -n)]),
    "conv stride": lambda jnp, lax, x, n: _conv(jnp, lax, strides=(n,)),
    "conv padding": lambda jnp, lax, x, n: _conv(jnp, lax, padding=[(n, -n)]),
    "conv lhs_dilation": lambda jnp, lax, x, n: _conv(jnp, lax, lhs_dilation=(n,)),
    "conv rhs_dilation": lambda jnp, lax, x, n: _conv(jnp, lax, rhs_dilation=(n,)),
    "conv groups": lambda jnp, lax, x, n: _conv(jnp, lax, feature_group_count=n),
    # Others.
    "fft": lambda jnp, lax, x, n: jnp.fft.fft(x, n),
    "irfft": lambda jnp, lax, x, n: jnp.fft.irfft(x, n),
    "power": lambda jnp, lax, x, n: lax.integer_pow(x, n),
    "matrix_power": lambda jnp, lax, x, n: jnp.linalg.matrix_power(jnp.eye(2), min(n, 2**40)),
    "fori_loop": lambda jnp, lax, x, n: lax.fori_loop(0, min(n, 2**20), lambda i, c: c + 1, x),
    "scan length": lambda jnp, lax, x, n: lax.scan(lambda c, _: (c, None), x, None, length=min(n, 2**20)),
    "scan stacked": lambda jnp, lax, x, n: lax.scan(lambda c, _: (c, c), x, None, length=n if n > 2**40 else min(n, 9)),
    "reduce_precision": lambda jnp, lax, x, n: lax.reduce_precision(x, n, 3),
    "shift": lambda jnp, lax, x, n: jnp.arange(3) << n,
    "segment_sum": lambda jnp, lax, x, n: _ops().segment_sum(x, jnp.arange(3), n),
    "random shape": lambda jnp, lax, x, n: _random().normal(_random().key(0), (n,)),
    "random split": lambda jnp, lax, x, n: _random().split(_random().key(0), n),
    "seed": lambda jnp, lax, x, n: _random().key(n),
    "vmap size": lambda jnp, lax, x, n: _library().vmap(lambda: 1.0, axis_size=n)(),
}


def _library() -> Any:
    import xlamini

    return xlamini


def _random() -> Any:
    return _library().random


def _ops() -> Any:
    return _library().ops


def _conv(jnp: Any, lax: Any, strides: Any = (1,), padding: Any = "SAME", image: Any = None, **options: Any) -> Any:
    image = jnp.ones((1, 2, 5)) if image is None else image
    return lax.conv_general_dilated(image, jnp.ones((2, 2, 3)), strides, padding, **options)


def outcomes(name: str) -> list[str]:
    """What becomes of the calls of one function, eager and in jit, in this process."""
    xlamini = _library()
    warnings.simplefilter("ignore")
    x, call, found = xlamini.numpy.arange(3.0), CALLS[name], []
    for n in SIZES:
        for way in (lambda f: f, xlamini.jit):
            try:
                out = way(lambda x, n=n: call(xlamini.numpy, xlamini.lax, x, n))(x)
                xlamini.block_until_ready(out)
                found.append(f"{n}: a result")
            except Exception as error:
                found.append(f"{n}: {type(error).__name__}: {str(error)[:100]}")
    return found


def run(*names: str) -> subprocess.CompletedProcess[str]:
    """Run the calls of these functions in a process of their own."""
    return subprocess.run(
        [sys.executable, "-m", __name__ if __name__ != "__main__" else "tests.support.odd_calls", "--here", *names],
        capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip


def verdict(*names: str) -> str:
    """What became of the calls of some functions, in one line; it begins with DEAD or HANGS if the process did that."""
    try:
        done = run(*names)
    except subprocess.TimeoutExpired:
        return "HANGS"
    if done.returncode:
        return f"DEAD ({done.returncode}) after {done.stdout[-200:]} {done.stderr[-600:]}"
    return f"{done.stdout.count('a result')} results of {2 * len(SIZES) * len(names)}"


def main() -> None:
    """Run the functions named on the command line, or all."""
    if sys.argv[1:2] == ["--here"]:
        for name in sys.argv[2:]:
            sys.stdout.write(f"{name}:\n" + "\n".join(outcomes(name)) + "\n")
            sys.stdout.flush()
        return
    for name in sys.argv[1:] or CALLS:
        sys.stdout.write(f"{name}: {verdict(name)}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
