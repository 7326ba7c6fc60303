"""Tracing and lowering make a number of calls that is about proportional to the size of the program, whatever that is.

Calls of Python and C functions are counted, not time. What one C function does in a loop is not seen:
`benchmarks/cases/scale.py` measures that.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini as jax
import xlamini.numpy as jnp
from xlamini import lax

SMALL, LARGE = 100, 400
X = np.linspace(0, 1, 128, dtype=np.float32)  # large enough for formulas

Program = tuple[Callable[..., Any], tuple[Any, ...]]


@jax.jit
def block(x: Any) -> Any:
    return jnp.sin(x) * x


@jax.jit
def doubled(leaves: dict[str, Any]) -> dict[str, Any]:
    return {name: leaf * 2 for name, leaf in leaves.items()}


def leaves_of(size: int) -> dict[str, np.ndarray]:
    return {f"leaf{i:04}": X for i in range(size)}


def chain(size: int, step: Callable[[Any, int], Any]) -> Program:
    def run(x: Any) -> Any:
        for i in range(size):
            x = step(x, i)
        return x

    return run, (X,)


def total(size: int) -> Program:
    def run(leaves: dict[str, Any]) -> Any:
        sum_of_all = jnp.zeros(X.shape)
        for leaf in leaves.values():
            sum_of_all = sum_of_all + jnp.cos(leaf)
        return block(sum_of_all)

    return run, (leaves_of(size),)


def gradient(size: int) -> Program:
    run, arguments = chain(size, lambda x, i: jnp.sin(x) * float(i))
    return jax.grad(lambda x: jnp.sum(run(x))), arguments


PROGRAMS: dict[str, Callable[[int], Program]] = {
    "formulas": lambda n: chain(n, lambda x, i: jnp.sin(x) * x),
    "numbers": lambda n: chain(n, lambda x, i: x + float(i)),
    "calls": lambda n: chain(n, lambda x, i: block(x)),
    "branches": lambda n: chain(n, lambda x, i: lax.cond(x[0] > i, jnp.sin, jnp.cos, x)),
    "gradient": gradient,
    "a call of many leaves": lambda n: (lambda leaves: doubled(doubled(leaves)), (leaves_of(n),)),
    "a sum of many leaves": total,
    "a concatenation": lambda n: (lambda leaves: jnp.concatenate(list(leaves.values())), (leaves_of(n),)),
    "a loop with many leaves": lambda n: (lambda x: lax.fori_loop(0, 3, lambda _, y: doubled(y), x), (leaves_of(n),)),
}


def calls_made(run: Callable[[], Any]) -> int:
    count = 0

    def counted(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        run()
    finally:
        sys.setprofile(before)
    return count


@pytest.mark.full
@pytest.mark.parametrize("name", PROGRAMS)
def test_calls_grow_with_the_program(name: str) -> None:
    def lower(size: int) -> int:
        fun, arguments = PROGRAMS[name](size)
        jax.clear_caches()  # equations that an earlier program had too are lowered in fewer calls
        return calls_made(lambda: jax.jit(fun).lower(*arguments))

    lower(SMALL)  # imports
    assert lower(LARGE) <= 1.5 * LARGE / SMALL * lower(SMALL)


@pytest.mark.usefixtures("optimized")
def test_a_chain_of_many_formulas_gives_the_value_of_numpy() -> None:
    run, _ = chain(200, lambda x, i: block(x) + 0.5)
    wanted = X.astype(np.float64)
    for _ in range(200):
        wanted = np.sin(wanted) * wanted + 0.5
    backwards = jax.jit(lambda x: run(x) + run(x)[::-1])
    np.testing.assert_allclose(backwards(X), wanted + wanted[::-1], rtol=1e-4)
