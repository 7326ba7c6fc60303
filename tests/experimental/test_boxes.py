"""Boxes under the transformations. Where JAX 0.10.2 takes the program, the values are those that it gives."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import lax, numpy as jnp
from xlamini.experimental import cur_qdd
from xlamini.experimental.hijax import Box, BoxTy, box_get, box_set, new_box

XS = np.arange(4, dtype=np.float32)


def _add(box: Box, x: Any) -> None:
    box.set(box.get() + x)


def _argument(box: Box) -> None:
    xlamini.jit(_add)(box, 2.0)
    xlamini.jit(_add)(box, 4.0)


def _closed_over(box: Box) -> None:
    add = xlamini.jit(lambda x: _add(box, x))
    add(2.0), add(4.0)


def _scan(box: Box) -> None:
    lax.scan(lambda carry, x: (_add(box, x), (carry, None))[1], 0.0, XS)


def _while(box: Box) -> None:
    lax.while_loop(lambda i: i < 3, lambda i: (_add(box, 2.0), i + 1)[1], 0)


def _cond(box: Box) -> None:
    lax.cond(jnp.float32(2.0) > 1, lambda x: _add(box, x), lambda x: box.set(x), 6.0)


def _grad(box: Box) -> None:
    xlamini.grad(lambda x: (_add(box, 2 * x), x * x)[1])(3.0)


def _checkpoint(box: Box) -> None:
    xlamini.grad(xlamini.checkpoint(lambda x: (_add(box, 2 * x), x * x)[1]))(3.0)


def _jit_of_scan(box: Box) -> None:
    xlamini.jit(lambda: _scan(box))()


def _vmap(box: Box) -> None:
    xlamini.vmap(lambda x: (_add(box, 6.0), x)[1])(XS)


@pytest.mark.parametrize(
    "use", [_argument, _closed_over, _scan, _while, _cond, _grad, _checkpoint, _jit_of_scan, _vmap]
)
def test_a_box_keeps_what_a_program_sets(use: Callable[[Box], None]) -> None:
    box = Box(jnp.float32(1.0))
    use(box)
    assert float(box.get()) == 7.0


@pytest.mark.full
def test_the_types_in_a_box_may_change_under_jit_and_cond() -> None:
    box = new_box()
    put = xlamini.jit(lambda x: box.set({"seen": x, "before": box.get()}))
    put(XS)
    put(XS[:2])
    assert box.get()["seen"].shape == (2,)
    np.testing.assert_array_equal(box.get()["before"]["seen"], XS)
    empty = new_box()
    lax.cond(jnp.bool_(False), lambda x: empty.set((x,)), lambda x: empty.set((x + 1,)), 5.0)
    assert float(empty.get()[0]) == 6.0


@pytest.mark.full
def test_derivatives_flow_through_a_box() -> None:
    def cube(x: Any) -> Any:
        box = Box(x * x)
        return box.get() * x

    assert float(xlamini.grad(cube)(3.0)) == 27.0
    assert float(xlamini.grad(xlamini.jit(cube))(3.0)) == 27.0
    outer = Box(2.0)
    assert float(xlamini.grad(lambda x: outer.get() * x)(3.0)) == 2.0
    value, box = xlamini.grad(lambda b, x: (b.set(3 * x), x**2)[1], argnums=1), Box(0.0)
    assert (float(value(box, 2.0)), float(box.get())) == (4.0, 6.0)


@pytest.mark.full
def test_boxes_of_a_batch() -> None:
    def twice(x: Any) -> Any:
        box = new_box()
        box.set(x * 2)
        return box.get()

    np.testing.assert_array_equal(xlamini.vmap(twice)(XS), XS * 2)
    box = Box((XS, XS))
    xlamini.vmap(lambda b, x: b.set((b.get()[0] + x, b.get()[1])))(box, XS)
    np.testing.assert_array_equal(box.get()[0], XS * 2)


@pytest.mark.full
def test_a_box_keeps_a_copy_of_the_containers() -> None:
    given = {"a": 1.0}
    box = Box(given)
    given["a"] = 2.0
    box.get()["a"] = 3.0
    assert box.get() == {"a": 1.0}
    assert box_get(box) == box.get()
    box_set(box, XS)
    assert cur_qdd(box).leaf_avals == (xlamini.typeof(XS),)
    assert xlamini.typeof(box) == BoxTy()
    assert xlamini.tree.leaves({"b": box}) == [box]


def _in_loop() -> Any:
    box = new_box()
    return lax.scan(lambda carry, x: (box.set(x), (carry, None))[1], 0.0, XS)


def _branches_disagree() -> Any:
    box = Box(0.0)
    return lax.cond(jnp.bool_(True), lambda: box.set((1.0, 2.0)), lambda: None)


def _twice() -> Any:
    box = Box(0.0)
    return xlamini.jit(lambda a, b: a.set(b.get()))(box, box)


def _both_ways() -> Any:
    box = Box(0.0)
    return xlamini.jit(lambda b: box.get())(box)


@pytest.mark.full
@pytest.mark.parametrize(
    ("use", "error", "problem"),
    [
        (lambda: Box("text"), TypeError, "Box"),
        (lambda: Box(new_box()), TypeError, "the value has a ref or a box in it"),
        (lambda: jnp.sin(Box(1.0)), TypeError, r"read its value with box\.get\(\)"),
        (lambda: xlamini.jit(lambda b: b)(Box(1.0)), ValueError, r"return its value, box\.get\(\)"),
        (lambda: box_set(xlamini.new_ref(1.0), 2.0), TypeError, "box_set: a box is needed, got Ref"),  # type: ignore[arg-type]
        (_in_loop, TypeError, "structure"),
        (_branches_disagree, TypeError, "structure"),
        (_twice, ValueError, "passed twice"),
        (_both_ways, ValueError, "both closed over"),
    ],
)
def test_what_a_box_cannot_do_is_an_error_that_says_so(use: Any, error: Any, problem: str) -> None:
    with pytest.raises(error, match=problem):
        use()


def test_a_program_empties_a_box() -> None:
    box = Box(jnp.ones(3))
    xlamini.jit(lambda b: b.set(None))(box)
    assert box.get() is None
    xlamini.jit(lambda x: box.set({"x": x}))(1.0)
    xlamini.jit(lambda: box.set(None))()
    assert box.get() is None
