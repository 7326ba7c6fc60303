"""The cost of xlamini's rewrites, in microseconds per equation: `python -m benchmarks.rewrite_costs`.

Unlike the cases, this measures internals of xlamini and does not run JAX; the time of tracing is excluded.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import xlamini
from benchmarks import transformer
from xlamini.core.program.jaxpr import Jaxpr, close_over
from xlamini.core.program.primitive import Axis
from xlamini.core.program.tangents import is_differentiable
from xlamini.core.tracing.tracer import aval_of, build
from xlamini.interpreters.batch import batch
from xlamini.interpreters.dce import dce
from xlamini.interpreters.jvp import jvp
from xlamini.interpreters.linearize import linearize
from xlamini.interpreters.transpose import transpose

ROUNDS, LAYERS, EXAMPLES = 5, 12, 3
LENGTHS = (1_000, 10_000, 100_000)


def main() -> None:
    """Print a table with one line per program and one column per rewrite."""
    print(f"{'program':34}" + "".join(f"{name:>12}" for name in REWRITES))
    for length in LENGTHS:
        report(f"chain of {length:,}", lambda length=length: chain(length))
    report(f"loss of a {LAYERS}-layer transformer", loss)


def report(name: str, program: Callable[[], Jaxpr]) -> None:
    """Print one line of the table: the fastest of several rounds, each with a new program."""
    best = dict.fromkeys(REWRITES, float("inf"))
    for _ in range(ROUNDS):
        jaxpr = program()
        for rewrite, run in REWRITES.items():
            best[rewrite] = min(best[rewrite], run(jaxpr) / len(jaxpr.eqns) * 1e6)
    print(f"{name:34}" + "".join(f"{best[rewrite]:12.1f}" for rewrite in REWRITES), flush=True)


def timed(call: Callable[[], Any]) -> float:
    gc.collect()
    start = time.process_time()
    call()
    return time.process_time() - start


def tangents(jaxpr: Jaxpr) -> tuple[bool, ...]:
    return tuple(is_differentiable(a) for a in jaxpr.in_avals)


def transposed(jaxpr: Jaxpr) -> float:
    """The time to transpose the linear program only."""
    lin = linearize(jaxpr, tangents(jaxpr))
    linear = (False,) * lin.num_residuals + (True,) * (len(lin.tangent.invars) - lin.num_residuals)
    return timed(lambda: transpose(lin.tangent, linear, (True,) * len(lin.tangent.outvars)))


REWRITES: dict[str, Callable[[Jaxpr], float]] = {
    "jvp": lambda jaxpr: timed(lambda: jvp(jaxpr, tangents(jaxpr))),
    "linearize": lambda jaxpr: timed(lambda: linearize(jaxpr, tangents(jaxpr))),
    "transpose": transposed,
    "batch": lambda jaxpr: timed(
        lambda: batch(jaxpr, Axis(EXAMPLES), tuple(0 if d else None for d in tangents(jaxpr)))
    ),
    "dce": lambda jaxpr: timed(lambda: dce(jaxpr, (True,) * len(jaxpr.outvars))),
}


def chain(length: int) -> Jaxpr:
    """A chain of elementwise operations."""
    lax = xlamini.lax

    def run(x: Any) -> list[Any]:
        for _ in range(length // 4):
            x = lax.tanh(lax.add(lax.mul(lax.sin(x), x), x))
        return [x]

    return build(run, [aval_of(np.ones(16, np.float32))])[0]


def loss() -> Jaxpr:
    """The loss of `benchmarks.transformer` as a jaxpr."""
    params, tokens = transformer.init_params(LAYERS), transformer.make_batch()
    leaves, tree = xlamini.tree.flatten(params)
    fun = transformer.make_loss(xlamini)
    jaxpr, _ = build(lambda *xs: [fun(tree.unflatten(xs), tokens)], [aval_of(x) for x in leaves])
    return close_over(jaxpr)


if __name__ == "__main__":
    main()
