"""`in_nzs` of vjp and linearize: arguments that are constants, and `out_nzs`, the outputs that depend on the others.

The values are those of JAX 0.12.0.1.
"""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import numpy as jnp

X = jnp.float32(2.0)
D = {"a": X + 1, "b": X}


def f(x: Any, d: Any) -> Any:
    return x * d["a"], [d["b"] + 1, x]


VJPS: list[tuple[Any, Any, Any]] = [
    ((False, True), (True, [True, False]), [0.0, 4.0, 2.0]),
    ((True, (False, True)), (True, [True, True]), [8.0, 0.0, 2.0]),
    (None, (True, [True, True]), [8.0, 4.0, 2.0]),
    (False, (False, [False, False]), [0.0, 0.0, 0.0]),
]


@pytest.mark.parametrize(("in_nzs", "out_nzs", "cotangents"), VJPS)
@pytest.mark.parametrize("wrap", [lambda f: f, xlamini.jit])
def test_vjp(wrap: Any, in_nzs: Any, out_nzs: Any, cotangents: Any) -> None:
    def pulled(x: Any, d: Any) -> Any:
        _, pullback = xlamini.vjp(f, x, d, in_nzs=in_nzs)
        assert pullback.out_nzs == out_nzs
        return pullback((X, [X, X]))

    found = wrap(pulled)(X, D)
    np.testing.assert_array_equal(xlamini.tree.leaves(found), cotangents)
    assert xlamini.tree.structure(found) == xlamini.tree.structure((X, D))


def test_linearize() -> None:
    _, linear = xlamini.linearize(f, X, D, in_nzs=(False, True))
    assert linear.out_nzs == (True, [True, False])
    np.testing.assert_array_equal(xlamini.tree.leaves(linear(X, D)), [6.0, 2.0, 0.0])


def test_whole_numbers_have_no_tangent() -> None:
    _, pullback = xlamini.vjp(lambda x, n: {"x": x, "n": n}, X, 3, in_nzs=True)
    assert pullback.out_nzs == {"x": True, "n": False}


def test_in_batches_and_with_refs() -> None:
    ref = xlamini.new_ref(jnp.float32(0.0))
    _, pullback = xlamini.vjp(f, X, D, in_nzs=(False, True))
    pullback.with_refs(ref, xlamini.ad.GradValue())((X, [X, X]))
    assert ref[...] == 0.0
    batched = xlamini.vmap(lambda x: xlamini.vjp(f, x, D, in_nzs=(True, False))[1]((x, [x, x]))[0])
    np.testing.assert_array_equal(batched(jnp.arange(3.0)), 4 * np.arange(3.0))


@pytest.mark.parametrize("transform", [xlamini.vjp, xlamini.linearize])
def test_other_trees_are_refused(transform: Any) -> None:
    with pytest.raises(ValueError, match="in_nzs has 1 entries for 2 arguments"):
        transform(f, X, D, in_nzs=(False,))
    with pytest.raises(TypeError, match="in_nzs must be a bool or a tuple of them, got 3"):
        transform(f, X, D, in_nzs=(False, 3))
