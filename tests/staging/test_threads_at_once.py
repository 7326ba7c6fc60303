"""Threads that trace, compile and run at once: the first calls of one function, and of many, give right values."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp

THREADS = 8


def at_once(calls: list[Callable[[], Any]]) -> list[Any]:
    """The results of calls, each in a thread of its own; all begin together."""
    start = threading.Barrier(len(calls))

    def run(call: Callable[[], Any]) -> Any:
        start.wait()
        return call()

    with ThreadPoolExecutor(len(calls)) as pool:
        return list(pool.map(run, calls))


def wave(scale: float) -> Callable[[Any], Any]:
    """A new function, which no thread has called."""
    return lambda x: jnp.sin(scale * x).sum()


TRANSFORMS: dict[str, tuple[Callable[..., Any], Callable[[float, np.ndarray], np.ndarray]]] = {
    "jit": (lambda f: xlamini.jit(f), lambda s, x: np.sin(s * x).sum()),
    "grad": (lambda f: xlamini.grad(f), lambda s, x: s * np.cos(s * x)),
    "vmap": (lambda f: xlamini.vmap(f), lambda s, x: np.sin(s * x)),
    "jit of grad": (lambda f: xlamini.jit(xlamini.grad(f)), lambda s, x: s * np.cos(s * x)),
    "jit of vmap of grad": (
        lambda f: xlamini.jit(xlamini.vmap(xlamini.grad(f))), lambda s, x: s * np.cos(s * x)
    ),
}  # fmt: skip
X = np.linspace(0.0, 1.0, 5, dtype=np.float32)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_first_calls_of_one_function(name: str) -> None:
    transform, expected = TRANSFORMS[name]
    f = transform(wave(2.0))
    for found in at_once([lambda: f(X)] * THREADS):
        np.testing.assert_allclose(found, expected(2.0, X), rtol=1e-5)


@pytest.mark.parametrize("name", TRANSFORMS)
def test_first_calls_of_many_functions(name: str) -> None:
    transform, expected = TRANSFORMS[name]
    scales = [1.0 + i / 4 for i in range(THREADS)]
    founds = at_once([lambda s=s: transform(wave(s))(X) for s in scales])
    for scale, found in zip(scales, founds, strict=True):
        np.testing.assert_allclose(found, expected(scale, X), rtol=1e-5)


def test_one_function_at_eight_shapes() -> None:
    f = xlamini.jit(xlamini.grad(wave(3.0)))
    inputs = [np.linspace(0.0, 1.0, 2 + i, dtype=np.float32) for i in range(THREADS)]
    for x, found in zip(inputs, at_once([lambda x=x: f(x) for x in inputs]), strict=True):
        np.testing.assert_allclose(found, 3 * np.cos(3 * x), rtol=1e-5)


def test_transforms_of_one_function_while_caches_are_cleared() -> None:
    f = wave(1.5)
    calls = [lambda t=t: t(f)(X) for t, _ in TRANSFORMS.values()]
    founds = at_once([*calls, *[xlamini.clear_caches] * 3])
    for found, (_, expected) in zip(founds, TRANSFORMS.values(), strict=False):
        np.testing.assert_allclose(found, expected(1.5, X), rtol=1e-5)
