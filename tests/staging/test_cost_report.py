"""`jit(f).cost`: equal to closed forms, in all and by line, scope and direction; what it does not know, it says."""
from __future__ import annotations

import json
import linecache
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import lax, nn

X, W = jnp.ones((4, 8)), jnp.ones((8, 8))
PRODUCT = 2 * 4 * 8 * 8
SINE = 10 * 4 * 8  # a transcendental function counts as ten operations an element


def stacked(body: Any, trips: int = 3) -> Callable[..., Any]:
    """The sum of a scan of `body` over weights."""
    return lambda w, x: lax.scan(lambda c, wi: (body(c, wi), None), x, w, length=trips)[0].sum()


def product(c: Any, w: Any) -> Any:
    return c @ w


def test_a_product_is_exact() -> None:
    cost = xlamini.jit(product).cost(X, W)
    assert cost.flops == PRODUCT
    assert cost.bytes == 4 * (32 + 64 + 32)
    assert cost.intensity == PRODUCT / 512


def directions(fun: Callable[..., Any], *args: Any) -> dict[str, int]:
    """The flops of a function and of its transpose for all arguments, by direction; those that are zero left out."""

    def both(args: Any, ct: Any) -> Any:
        out, transposed = xlamini.vjp(fun, *args)
        return out, transposed(ct)

    cost = xlamini.jit(both).cost(args, xlamini.eval_shape(fun, *args))
    return {name: c.flops for name, c in cost.by_direction.items() if c.flops}


def test_a_product_costs_twice_as_much_backward() -> None:
    assert directions(product, X, W) == {"forward": PRODUCT, "backward": 2 * PRODUCT}
    batched = lambda x, y: jnp.einsum("bij,bjk->bik", x, y)
    assert directions(batched, jnp.ones((5, 4, 8)), jnp.ones((5, 8, 8))) == {
        "forward": 5 * PRODUCT,
        "backward": 10 * PRODUCT,
    }


@pytest.mark.parametrize("groups", [1, 3])
@pytest.mark.parametrize(
    ("padding", "strides", "places"), [("VALID", 1, 36), ("VALID", 2, 9), ("SAME", 1, 64), ("SAME", 2, 16)]
)
def test_a_convolution_is_exact(padding: str, strides: int, places: int, groups: int) -> None:
    def conv(x: Any, k: Any) -> Any:
        return lax.conv_general_dilated(x, k, (strides, strides), padding, feature_group_count=groups)

    forward = 2 * (2 * 6 * places) * (3 // groups * 3 * 3)  # results times taps
    found = directions(conv, jnp.ones((2, 3, 8, 8)), jnp.ones((6, 3 // groups, 3, 3)))
    assert found == {"forward": forward, "backward": 2 * forward}


@pytest.mark.parametrize("padding", ["VALID", "SAME"])
def test_a_transposed_convolution_counts_its_inputs(padding: str) -> None:
    def conv(x: Any, k: Any) -> Any:
        return lax.conv_transpose(x, k, (2, 2), padding)

    forward = 2 * (2 * 8 * 8 * 3) * (5 * 3 * 3)  # elements times taps
    found = directions(conv, jnp.ones((2, 8, 8, 3)), jnp.ones((3, 3, 3, 5)))
    assert found == {"forward": forward, "backward": 2 * forward}


def test_attention_is_exact() -> None:
    batch, heads, queries, keys, width = 2, 4, 16, 24, 8
    one = 2 * batch * heads * queries * keys * width  # either product
    scores = batch * heads * queries * keys
    q, k = jnp.ones((batch, queries, heads, width)), jnp.ones((batch, keys, heads, width))
    # the scale, and of softmax max, sub, exp (10), sum, div
    assert xlamini.jit(nn.dot_product_attention).cost(q, k, k).flops == 2 * one + 15 * scores
    assert directions(nn.dot_product_attention, q, k, k) == {
        "forward": 2 * one + 15 * scores,
        "backward": 4 * one + 6 * scores,  # of softmax two products, a sum, its sign, and a sum; the scale
    }


def test_lines_and_scopes_sum_to_the_whole() -> None:
    def f(x: Any, w: Any) -> Any:
        with xlamini.named_scope("layer"):
            h = x @ w
        return jnp.tanh(h)

    cost = xlamini.jit(f).trace(X, W).cost()
    lines = {linecache.getline(__file__, int(line.split(":")[-1])).strip(): c.flops for line, c in cost.by_line.items()}
    assert lines == {"h = x @ w": PRODUCT, "return jnp.tanh(h)": SINE}
    assert {scope: c.flops for scope, c in cost.by_scope.items()} == {"layer": PRODUCT, "": SINE}
    assert all(line.startswith(__file__) for line in cost.by_line)


def test_a_scan_counts_its_trips() -> None:
    f = stacked(product)
    cost = xlamini.jit(f).cost(jnp.ones((3, 8, 8)), X)
    assert cost.flops == 3 * PRODUCT + 32


def test_a_scan_and_its_recomputation_are_exact() -> None:
    def scanned(body: Any) -> Any:
        return lambda w, x: lax.scan(lambda c, wi: (body(c, wi), None), x, w)[0]

    def two(c: Any, w: Any) -> Any:
        return (c @ w) @ w

    w = jnp.ones((3, 8, 8))
    assert directions(scanned(product), w, X) == {"forward": 3 * PRODUCT, "backward": 6 * PRODUCT}
    sums = 3 * W.size  # of the two cotangents of w
    assert directions(scanned(two), w, X) == {"forward": 6 * PRODUCT, "backward": 12 * PRODUCT + sums}
    assert directions(scanned(xlamini.checkpoint(two)), w, X) == {
        "forward": 6 * PRODUCT,
        "backward": 12 * PRODUCT + sums,
        "recomputation": 3 * PRODUCT,
    }


def test_backward_products_are_twice_the_forward_ones() -> None:
    cost = xlamini.jit(xlamini.grad(stacked(product), (0, 1))).cost(jnp.ones((3, 8, 8)), X).by_direction
    assert cost["forward"].flops >= 3 * PRODUCT
    assert cost["backward"].flops // PRODUCT == 6
    assert cost["recomputation"] == cost["jvp"] == (0, 0)


@pytest.mark.parametrize("wrap", [lambda f: f, xlamini.jit], ids=["plain", "jit"])
def test_recomputation_is_apart(wrap: Any) -> None:
    def layer(c: Any, w: Any) -> Any:
        return jnp.sin(jnp.sin(c @ w))

    plain = xlamini.jit(xlamini.grad(stacked(layer), (0, 1))).cost(jnp.ones((3, 8, 8)), X)
    f = stacked(xlamini.checkpoint(wrap(layer)))
    remat = xlamini.jit(xlamini.grad(f, (0, 1))).cost(jnp.ones((3, 8, 8)), X)
    assert plain.by_direction["recomputation"].flops == 0
    assert remat.by_direction["recomputation"].flops == 3 * (PRODUCT + 3 * SINE)  # one sine and two cosines
    assert remat.by_direction["forward"].flops == 3 * (PRODUCT + 2 * SINE)
    assert remat.by_direction["backward"].flops // PRODUCT == 6


def test_forward_mode_and_forward_checkpoint() -> None:
    def f(x: Any) -> Any:
        return xlamini.jvp(xlamini.checkpoint(lambda x: x @ W), (x,), (x,))

    cost = xlamini.jit(f).cost(X).by_direction
    assert cost["jvp"].flops == 2 * PRODUCT
    assert cost["recomputation"] == (0, 0)


@pytest.mark.parametrize("wrap", [lambda f: f, xlamini.jit], ids=["plain", "jit"])
def test_the_rule_of_a_custom_vjp_is_backward(wrap: Any) -> None:
    f = xlamini.custom_vjp(lambda x: x @ W)
    f.defvjp(lambda x: (x @ W, None), wrap(lambda _, ct: (ct @ W.T,)))
    cost = xlamini.jit(xlamini.value_and_grad(lambda x: f(x).sum())).cost(X).by_direction
    assert (cost["forward"].flops, cost["backward"].flops) == (PRODUCT + X.size, PRODUCT)


def test_vmap_multiplies() -> None:
    cost = xlamini.jit(xlamini.vmap(product, (0, None))).cost(jnp.ones((5, 4, 8)), W)
    assert cost.flops == 5 * PRODUCT


def test_a_cond_counts_its_most_expensive_branch() -> None:
    def f(p: Any, x: Any) -> Any:
        return lax.cond(p, lambda x: x @ W, jnp.tanh, x)

    assert xlamini.jit(f).cost(True, X).flops - PRODUCT in (0, 1)  # one for the conversion of the predicate


def test_a_while_loop_says_that_its_trips_are_unknown() -> None:
    def f(x: Any) -> Any:
        return lax.while_loop(lambda x: x[0, 0] < 9, lambda x: x @ W, x)

    once, many = xlamini.jit(f).trace(X).cost(), xlamini.jit(f).trace(X).cost(while_trips=10)
    assert many.flops == 10 * once.flops
    assert many.left_out == ()
    assert "'while' at" in once.left_out[0] and "cost(while_trips=...) takes their number" in once.left_out[0]
    assert "Left out: 'while'" in repr(once)


def test_a_callback_is_left_out_in_words() -> None:
    def f(x: Any) -> Any:
        return xlamini.pure_callback(np.sin, xlamini.ShapeDtypeStruct((4, 8), np.float32), x)

    cost = xlamini.jit(f).cost(X)
    assert cost.flops == 0
    assert "its operations" not in cost.left_out[0].split(" at ")[0]
    assert cost.left_out[0].endswith("is counted without its operations, which are not known")


@pytest.mark.full
def test_the_whole_equals_the_count_of_the_compiled_program() -> None:
    f = xlamini.jit(xlamini.grad(stacked(xlamini.checkpoint(lambda c, w: jnp.tanh(c @ w))), (0, 1)))
    args = jnp.ones((3, 8, 8)), X
    counted = f.lower(*args).compile().cost_analysis("xlamini")
    cost = f.cost(*args)
    assert (cost.flops, cost.bytes) == (counted["flops"], counted["bytes accessed"])


def test_it_is_json_and_a_table() -> None:
    cost = xlamini.jit(product).cost(X, W)
    assert json.loads(json.dumps(cost.as_dict()))["flops"] == PRODUCT
    assert repr(cost).splitlines()[0] == "product: 512 flops, 512 bytes, 1 flops per byte"


@pytest.mark.parametrize("trips", [-1, 2.5, True])
def test_bad_trips(trips: Any) -> None:
    with pytest.raises(ValueError, match="while_trips must be a number of iterations such as 100"):
        xlamini.jit(product).trace(X, W).cost(while_trips=trips)
