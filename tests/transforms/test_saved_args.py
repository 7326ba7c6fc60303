"""What the pullback of `vjp` stores: `args_res`, `opaque_residuals` and `saveable_args`."""
from __future__ import annotations

from typing import Any

import pytest

import xlamini
from tests.support.checks import assert_close
from xlamini import numpy as jnp
from xlamini.transforms.derivatives.saved_args import NotNeeded, NotSaveable

W, X = jnp.arange(6.0).reshape(3, 2) / 10, jnp.ones((2, 3))
CT = jnp.arange(4.0).reshape(2, 2)


def layer(w: Any, x: Any) -> Any:
    return jnp.tanh(x @ w)


def product(tree: Any) -> Any:
    return tree["left"] @ tree["right"][0]


def assert_all_close(actual: Any, expected: Any, tolerance: float) -> None:
    for pair in zip(actual, expected, strict=True):
        assert_close(*pair, tolerance)


TREE = {"left": X, "right": [W, 7.0]}


def test_arguments_are_those_that_the_pullback_reads() -> None:
    out, pullback = xlamini.vjp(layer, W, X)
    assert [len(xlamini.tree.leaves(x)) for x in (pullback.args_res, pullback.opaque_residuals)] == [2, 1]
    assert_all_close(pullback.args_res, [W, X], 0)
    assert_close(pullback.opaque_residuals[0], 1 - out * out, 1e-6)
    assert xlamini.vjp(jnp.sin, 1.0)[1].args_res == [NotNeeded()]
    assert pullback.in_tree == xlamini.tree.structure((0, 0)) and pullback.out_tree == xlamini.tree.structure(0)


def test_containers_are_nested_tuples_and_may_be_assigned_as_they_were() -> None:
    pullback = xlamini.vjp(product, TREE)[1]
    assert_close(pullback.args_res[0][0], X, 0)
    assert pullback.args_res[0][1][1] == NotNeeded()
    pullback.args_res = [{"left": 2 * X, "right": [W, 7.0]}]
    assert_close(pullback(CT)[0]["right"][0], 2 * X.T @ CT, 1e-6)


def test_an_assigned_argument_is_the_one_that_is_read() -> None:
    pullback = xlamini.vjp(jnp.multiply, 2.0, 3.0)[1]
    pullback.args_res[0] = 10.0
    assert_close(pullback(1.0), (3.0, 10.0), 0)
    assert_close(pullback.replace(args_res=[4.0, 5.0])(1.0), (5.0, 4.0), 0)
    assert_close(pullback(1.0), (3.0, 10.0), 0)
    assert_close(xlamini.tree.leaves(pullback), [3.0, 10.0], 0)


@pytest.mark.parametrize("saveable", [(False, True), (True, False), False])
def test_arguments_may_be_left_out_and_restored(saveable: Any) -> None:
    whole = xlamini.vjp(layer, W, X)[1]
    pullback = xlamini.vjp(layer, W, X, saveable_args=saveable)[1]
    left_out = [i for i in range(2) if pullback.args_res[i] == NotSaveable()]
    assert left_out == ([0, 1] if saveable is False else [saveable.index(False)])
    assert len(xlamini.tree.leaves(pullback)) == 3 - len(left_out)
    for i in left_out:
        pullback.args_res[i] = (W, X)[i]
    assert_all_close(pullback(CT), whole(CT), 0)


def test_a_part_of_an_argument_may_be_left_out() -> None:
    pullback = xlamini.vjp(product, TREE, saveable_args=((True, (False, True)),))[1]
    assert pullback.args_res[0][1] == (NotSaveable(), NotNeeded())
    pullback.args_res = [TREE]
    assert_close(pullback(CT)[0]["left"], CT @ W.T, 1e-6)


def test_pullbacks_without_arguments_pass_through_jitted_functions() -> None:
    fwd = xlamini.jit(lambda w, x: xlamini.vjp(layer, w, x, saveable_args=(False, True)))

    @xlamini.jit
    def bwd(pullback: Any, w: Any, ct: Any) -> Any:
        pullback.args_res[0] = w
        return pullback(ct)

    _, pullback = fwd(W, X)
    assert len(xlamini.tree.leaves(pullback)) == 2
    assert_all_close(bwd(pullback, W, CT), xlamini.vjp(layer, W, X)[1](CT), 1e-6)


def test_errors() -> None:
    pullback = xlamini.vjp(layer, W, X, saveable_args=(False, True))[1]
    with pytest.raises(ValueError, match=r"reads argument 0, which is not stored.*args_res\[0\]"):
        pullback(CT)
    pullback.args_res[0] = X
    with pytest.raises(TypeError, match=r"float32\[2,3\] is assigned to args_res\[0\].*float32\[3,2\]"):
        pullback(CT)
    pullback.args_res[0] = [W, W]
    with pytest.raises(ValueError, match=r"args_res\[0\] has 2 leaves"):
        pullback(CT)
    with pytest.raises(ValueError, match="args_res has 1 entries"):
        pullback.replace(args_res=[W])(CT)
    with pytest.raises(ValueError, match="saveable_args has 1 entries for 2"):
        xlamini.vjp(layer, W, X, saveable_args=(False,))
    with pytest.raises(TypeError, match="saveable_args must be a bool"):
        xlamini.vjp(layer, W, X, saveable_args=(None, True))
