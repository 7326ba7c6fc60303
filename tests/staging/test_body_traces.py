"""The body of a loop is traced once for each of its types, and again wherever an earlier trace would not do."""
from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import jit, lax, numpy as jnp

XS = np.arange(3, dtype=np.float32)


class Counted:
    """A function of a carry and an x, or of a carry, and how often it was run."""

    def __init__(self, fun: Callable[..., Any]):
        self.fun, self.count = fun, 0

    def __call__(self, *args: Any) -> Any:
        self.count += 1
        return self.fun(*args)


LOOPS: dict[str, tuple[Callable[..., Any], Callable[..., Any], Any]] = {
    "scan": (lambda c, x: (c + x, c), lambda f, start: lax.scan(f, start, XS)[0], 4.0),
    "fori_loop": (lambda i, c: c * 2, lambda f, start: lax.fori_loop(0, 3, f, start), 8.0),
    "while_loop": (lambda c: c * 2, lambda f, start: lax.while_loop(lambda c: c < 5, f, start), 8.0),
}


@pytest.mark.parametrize("name", LOOPS)
def test_a_body_is_traced_once_for_its_types(name: str) -> None:
    fun, loop, expected = LOOPS[name]
    counted = Counted(fun)
    for start in (1.0, 1.0, np.float32(1), np.float32(1), 1.0):
        assert float(loop(counted, start)) == expected
    assert counted.count == 2  # for a weakly typed start, and for the other one
    with xlamini.enable_checks(True):  # a flag that programs depend on
        assert float(loop(counted, 1.0)) == expected
    xlamini.clear_caches()
    assert float(loop(counted, 1.0)) == expected and counted.count >= 3


def test_one_function_in_two_kinds_of_loops() -> None:
    f = lambda a, b: [a + b, b] if getattr(b, "shape", None) == () else None
    last, ys = lax.scan(f, 0.0, XS)
    assert float(last) == 3.0 and ys.tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(TypeError, match="the same pytree"):
        lax.fori_loop(0, 3, f, np.float32(0))


def test_captured_tracers_are_those_of_the_call() -> None:
    held: dict[str, Any] = {}
    body = lambda c, x: (c + x * held["y"], None)

    def run(y: Any) -> Any:
        held["y"] = y
        return lax.scan(body, 0.0, XS)[0]

    assert float(jit(run)(2.0)) == 6.0
    assert float(jit(lambda y: run(y) + run(2 * y))(1.0)) == 9.0
    assert float(xlamini.grad(run)(2.0)) == 3.0
    assert xlamini.vmap(run)(jnp.arange(2.0)).tolist() == [0.0, 3.0]


def test_a_ref_that_is_read_is_read_again() -> None:
    scale = xlamini.new_ref(jnp.float32(1))
    body = lambda c, x: (c + x * scale[...], None)
    assert float(lax.scan(body, 0.0, XS)[0]) == 3.0
    scale[...] = 2.0
    assert float(lax.scan(body, 0.0, XS)[0]) == 6.0


def test_numbers_that_python_reads_in_a_gradient() -> None:
    held: dict[str, Any] = {}
    body = lambda c, x: (c * (3.0 if held["y"] > 0 else 5.0), None)

    def run(x: Any, y: Any) -> Any:
        held["y"] = y
        return lax.scan(body, x, XS)[0]

    assert [float(xlamini.grad(run)(1.0, y)) for y in (1.0, -1.0)] == [27.0, 125.0]


def test_functions_die_with_their_traces() -> None:
    body = lambda c, x: (c + x, None)
    lax.scan(body, 0.0, XS)
    alive = weakref.ref(body)
    del body
    gc.collect()
    assert alive() is None
