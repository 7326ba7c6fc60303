"""Rows of control flow, as functions of arrays: the result beside a Python loop's, and all that is derived from it."""
from __future__ import annotations

from typing import Any

import numpy as np

from tests.rows.row import Arg, Row
from xlamini import lax, numpy

WIDE = ("float32", "float64")
LOOSE = {"float32": 1e-4}


def flow(name: str, op: Any, reference: Any, *shapes: tuple[int, ...], **options: Any) -> Row:
    samples = [[Arg(shape, (0.5, 2)) for shape in shapes or ((3,),)]]
    return Row(name, op, reference, samples=samples, dtypes=WIDE, tolerance=LOOSE, **options)


def doubled(x: Any) -> Any:
    """Twice the number until it is over 8."""
    return lax.while_loop(lambda v: v.sum() < 8, lambda v: v * 2, x)


def doubled_by_hand(x: np.ndarray) -> np.ndarray:
    while x.sum() < 8:
        x = x * 2
    return x


def root(a: Any) -> Any:
    """The cube root, by Newton's method."""

    def solve(f: Any, guess: Any) -> Any:
        return lax.fori_loop(0, 30, lambda _, x: x - f(x) / (3 * x * x), guess)

    return lax.custom_root(lambda x: x**3 - a, numpy.ones_like(a), solve, lambda g, y: y / g(numpy.ones_like(y)))


def solution(d: Any, b: Any) -> Any:
    """Of a diagonal system."""
    return lax.custom_linear_solve(lambda x: d * x, b, lambda matvec, b: b / d, symmetric=True)


ROWS = [
    flow("cond", lambda x: lax.cond(x[0] > 0, lambda v: v * v, lambda v: -v, x), lambda x: x * x),
    flow("switch", lambda x: lax.switch(1, [lambda v: v, lambda v: v * 3, lambda v: v * v], x), lambda x: x * 3),
    flow("while_loop", doubled, doubled_by_hand, (), order=1, differentiable=False),
    flow("fori_loop", lambda x: lax.fori_loop(0, 3, lambda i, v: v * x + i, x), lambda x: ((x * x) * x + 1) * x + 2),
    flow("scan", lambda x: lax.scan(lambda c, v: (c * v, c), x[0], x)[1], lambda x: x[0] * np.cumprod([1, *x[:-1]])),
    flow("map", lambda x: lax.map(lambda v: v * v, x), lambda x: x * x, (3, 2)),
    flow("associative_scan", lambda x: lax.associative_scan(lambda a, b: a * b, x), np.cumprod, (5,)),
    flow(
        "platform_dependent",
        lambda x: lax.platform_dependent(x, cpu=lambda v: v * v, default=lambda v: v * v),
        lambda x: x * x,
    ),
    flow("custom_root", root, np.cbrt, order=1),
    flow("custom_linear_solve", solution, lambda d, b: b / d, (3,), (3,)),
    flow("optimization_barrier: of one", lambda x: lax.optimization_barrier(x) * x, lambda x: x * x),
]
