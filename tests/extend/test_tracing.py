"""Partly known programs, the state of tracing, symbolic zeros, and programs as libraries read them."""
from __future__ import annotations

import copy
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import extend, grad, jit, jvp, lax, numpy as jnp, vmap

F32 = extend.ShapedArray((), np.float32)


def mixed(x: Any, y: Any) -> list[Any]:
    """Some results of the known argument alone, some of both; a call and a loop have parts of both kinds."""
    sine, product = jit(lambda a, b: (jnp.sin(a), jnp.sin(a) * b))(x, y)
    carry, steps = lax.scan(lambda c, t: (c * 2 + t * y, t * x), x, jnp.arange(3.0))
    return [sine, product, carry, steps, jnp.cos(sine), y]


@pytest.mark.parametrize("known", [2.0, np.float32(2.0), jnp.float32(2.0)], ids=["number", "numpy", "array"])
def test_a_partial_trace_computes_what_is_known(known: Any) -> None:
    part = extend.trace_partly(mixed, [known, extend.Unknown(F32)])
    assert [isinstance(x, extend.Unknown) for x in part.outs] == [False, True, True, False, False, True]
    assert all(isinstance(x, xlamini.Array) for x in part.outs if not isinstance(x, extend.Unknown))
    later = iter(extend.eval_jaxpr(part.jaxpr, part.consts, 3.0))
    outs = [next(later) if isinstance(x, extend.Unknown) else x for x in part.outs]
    for found, wanted in zip(outs, mixed(known, 3.0), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-6)


def test_what_is_computed_of_the_known_is_no_part_of_the_program() -> None:
    part = extend.trace_partly(lambda x, y: [jnp.exp(x) + jnp.exp(y)], [1.0, extend.Unknown(F32)])
    assert [eqn.primitive.name for eqn in part.jaxpr.eqns] == ["exp", "add"]
    np.testing.assert_allclose(part.consts[0], np.e, rtol=1e-6)


def test_known_results_may_be_asked_for_as_unknown() -> None:
    part = extend.trace_partly(lambda x, y: [x + 1.0, y], [1.0, extend.Unknown(F32)], unknown_outs=[True, False])
    assert all(isinstance(x, extend.Unknown) for x in part.outs)
    np.testing.assert_allclose(extend.eval_jaxpr(part.jaxpr, part.consts, 5.0), [2.0, 5.0])


@pytest.mark.full
def test_a_partial_trace_inside_a_trace_and_its_derivative() -> None:
    def f(x: Any) -> Any:
        part = extend.trace_partly(mixed, [x, extend.Unknown(F32)])
        later = extend.eval_jaxpr(part.jaxpr, part.consts, 3.0)
        return part.outs[0] + part.outs[4] + later[0] + later[1]

    def plain(x: Any) -> Any:
        sine, product, carry, _, cosine, _ = mixed(x, 3.0)
        return sine + cosine + product + carry

    for transform in (grad, lambda f: jit(grad(f)), lambda f: grad(jit(f)), jit, vmap):
        x = jnp.array([0.5, 1.0]) if transform is vmap else 0.5
        np.testing.assert_allclose(transform(f)(x), transform(plain)(x), rtol=1e-5)


def test_the_state_of_tracing() -> None:
    outside, seen = extend.trace_state(), []
    assert extend.trace_is_clean() and outside == extend.trace_state()

    def f(x: Any) -> Any:
        seen.append(extend.trace_state())
        assert extend.trace_state() == seen[-1] == copy.deepcopy(seen[-1]) == extend.trace_of(x)
        assert not extend.trace_is_clean()
        return x

    jit(f)(1.0)
    jit(lambda x: f(x) * 2)(1.0)
    grad(f)(1.0)
    assert len({outside, *seen}) == 4
    assert all(a != b for i, a in enumerate(seen) for b in seen[:i])
    assert extend.trace_of(3.0) == outside


def test_what_is_differentiated_is_told_exactly() -> None:
    def marks(x: Any) -> list[bool]:
        values = (x, jnp.sin(x), x.astype(int), lax.stop_gradient(x), jnp.floor(x), 2 * x + lax.stop_gradient(x), 1.0)
        return [extend.is_differentiated(v, innermost=True) for v in values]

    seen: list[list[bool]] = []

    def f(x: Any) -> Any:
        seen.append(marks(x))
        return x * 1.0

    grad(f)(1.0)
    jvp(f, (1.0,), (1.0,))
    jit(grad(f))(1.0)
    vmap(grad(f))(jnp.ones(2))
    assert seen == [[True, True, False, False, False, True, False]] * 4
    seen.clear()
    jit(lambda x: f(x))(1.0)
    vmap(f)(jnp.ones(2))
    grad(jit(lambda x: f(x)))(1.0)
    assert seen == [[False] * 7] * 3


def test_outer_inputs_are_told_from_inner_ones() -> None:
    def outer(x: Any) -> Any:
        def inner(y: Any) -> Any:
            assert extend.is_differentiated(x) and not extend.is_differentiated(x, innermost=True)
            assert extend.is_differentiated(y, innermost=True)
            return x * y

        return grad(inner)(x)

    assert grad(outer)(3.0) == 1.0


def test_zeros_and_operands_without_value_are_nodes_without_leaves() -> None:
    zero, operand = extend.Zero(F32), extend.Linear(F32)
    leaves, tree = xlamini.tree.flatten((zero, 1.0, operand))
    assert leaves == [1.0]
    again = xlamini.tree.unflatten(tree, [2.0])
    assert extend.is_zero(again[0]) and again[0].aval is F32 and extend.is_linear(again[2])
    outs = vmap(lambda x: (x, zero))(jnp.ones(3))
    assert extend.is_zero(outs[1])


def test_zeros_become_arrays() -> None:
    assert extend.Zero.from_primal_value(jnp.ones(2)).aval == extend.ShapedArray((2,), np.float32)
    integer = extend.Zero.from_primal_value(3)
    assert integer.aval.dtype == xlamini.float0
    assert extend.instantiated(integer).dtype == xlamini.float0
    np.testing.assert_array_equal(extend.instantiated(extend.Zero(F32)), 0.0)
    zero = extend.Zero(F32)
    assert extend.sum_of_tangents(None, zero) is zero and extend.sum_of_tangents(zero, 2.0) == 2.0
    assert extend.sum_of_tangents(1.0, None) == 1.0
    np.testing.assert_allclose(extend.sum_of_tangents(1.0, 2.0), 3.0)


# --- programs


def test_parts_of_a_program() -> None:
    closed = xlamini.make_jaxpr(lambda x: jit(jnp.sin)(x) * 2.0 + np.arange(3.0, dtype=np.float32))(1.0)
    assert closed.literals is closed.consts and closed.debug_info.func_name == "<lambda>"
    call = closed.jaxpr.eqns[0]
    inner = call.params["jaxpr"]
    assert (inner.jaxpr, inner.consts, inner.literals) == (inner, [], [])
    assert extend.jaxprs_in(call.params) == [inner]
    assert "test_tracing.py" in str(call.source_info.source) and call.source_info.name_stack == ""
    with call.ctx.manager:
        assert call.replace(params={**call.params, "name": "other"}).params["name"] == "other"
    assert call.replace(source_info=call.source_info, ctx=call.ctx).invars == call.invars
    assert inner.replace(debug_info=closed.debug_info, effects=inner.effects).name == "<lambda>"
    assert call.primitive.get_bind_params(call.params) == call.params


@pytest.mark.full
def test_an_equation_with_another_program() -> None:
    """An interpreter binds calls, loops and branches again, with closed jaxprs of its own in their params."""
    offset = jnp.float32(10.0)

    def f(x: Any) -> Any:
        y = jit(jnp.sin)(x)
        z = lax.cond(x > 0, lambda v: v, lambda v: 2 * v, y)
        return lax.scan(lambda c, _: (c + z, None), x, None, length=3)[0]

    def with_offset(closed: Any) -> Any:
        return xlamini.make_jaxpr(
            lambda *args: [v + offset if v.dtype == np.float32 else v for v in extend.jaxpr_as_fun(closed)(*args)]
        )(*closed.in_avals)

    def changed(param: Any) -> Any:
        if isinstance(param, extend.Jaxpr):
            return with_offset(extend.ClosedJaxpr(param, ()))
        return tuple(map(changed, param)) if isinstance(param, tuple) else param

    def interpreted(x: Any) -> Any:
        jaxpr = xlamini.make_jaxpr(f)(x).jaxpr
        env = dict(zip(jaxpr.invars, [x], strict=True))
        for eqn in jaxpr.eqns:
            params = {name: changed(value) for name, value in eqn.params.items()}
            operands = [a.val if isinstance(a, extend.Literal) else env[a] for a in eqn.invars]
            outs = eqn.primitive.bind(*operands, **eqn.primitive.get_bind_params(params))
            env.update(zip(eqn.outvars, outs if eqn.primitive.multiple_results else [outs], strict=True))
        return env[jaxpr.outvars[0]]

    def plain(x: Any) -> Any:
        y = jnp.sin(x) + 10
        z = jnp.where(x > 0, y, 2 * y) + 10
        return x + 3 * (z + 10)

    for x in map(np.float32, (0.5, -0.5)):
        np.testing.assert_allclose(interpreted(x), plain(x), rtol=1e-6)
        np.testing.assert_allclose(jit(grad(interpreted))(x), grad(plain)(x), rtol=1e-6)


def test_a_type_takes_a_list_and_a_sharding() -> None:
    aval = extend.ShapedArray([2, 3], "float32")
    assert aval is extend.ShapedArray((2, 3), np.float32)
    x = jnp.ones((2, 3))
    assert extend.ShapedArray(x.shape, x.dtype, sharding=x.sharding) is aval
    mesh = xlamini.make_mesh((2,), ("x",), axis_types=(xlamini.sharding.AxisType.Explicit,))
    placed = xlamini.device_put(x, xlamini.NamedSharding(mesh, xlamini.P("x")))
    typed = extend.ShapedArray(x.shape, x.dtype, sharding=placed.sharding)
    assert typed is xlamini.typeof(placed) and typed is not aval
