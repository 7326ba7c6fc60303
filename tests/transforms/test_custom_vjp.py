"""custom_vjp and custom_gradient: rules in every nesting, beside finite differences and beside the plain functions."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import custom_derivatives, lax, numpy as jnp
from xlamini.staging.run.programs import shared

grad, jit, vmap, jvp, vjp = xlamini.grad, xlamini.jit, xlamini.vmap, xlamini.jvp, xlamini.vjp


def ruled(fun: Callable[..., Any], fwd: Any, bwd: Any, symbolic_zeros: bool = False, **options: Any) -> Any:
    made = xlamini.custom_vjp(fun, **options)
    made.defvjp(fwd, bwd, symbolic_zeros=symbolic_zeros)
    return made


def slope(fun: Callable[..., Any], x: float, step: float = 1e-4) -> float:
    """The derivative by central differences of fourth order."""
    near, far = fun(x + step) - fun(x - step), fun(x + 2 * step) - fun(x - 2 * step)
    return float((8 * near - far) / (12 * step))


def sine() -> Any:
    """The sine, whose rules call it and one another's function."""
    made = xlamini.custom_vjp(lambda x: jnp.sin(x))
    made.defvjp(lambda x: (made(x), x), lambda x, ct: (ct * cosine(x),))
    cosine = xlamini.custom_vjp(lambda x: jnp.cos(x))
    cosine.defvjp(lambda x: (cosine(x), x), lambda x, ct: (-ct * made(x),))
    return made


def product() -> Any:
    return ruled(lambda x, y: x * y, lambda x, y: (x * y, (x, y)), lambda res, ct: (ct * res[1], ct * res[0]))


def tripled() -> Any:
    """The identity with a derivative that is wrong, so that it shows which rule was used."""
    return ruled(lambda x: x, lambda x: (x, None), lambda _, ct: (3 * ct,))


# --- values and orders


def test_without_a_derivative_it_is_the_function() -> None:
    made = tripled()
    assert made(2.0) == 2.0
    assert float(jit(made)(2.0)) == 2.0
    assert made.__name__ == "<lambda>"
    np.testing.assert_allclose(vmap(made)(jnp.arange(3.0)), np.arange(3.0))


@pytest.mark.sample(12)
@pytest.mark.parametrize("wrap", [lambda f: f, jit, lambda f: jit(jit(f)), xlamini.checkpoint])
def test_three_orders_by_finite_differences(wrap: Any) -> None:
    with xlamini.enable_x64(True):
        fun = wrap(lambda x: sine()(x) * jnp.exp(sine()(2 * x)))
        first, second, third = grad(fun), grad(grad(fun)), grad(grad(grad(fun)))
        for lower, higher in ((fun, first), (first, second), (second, third)):
            assert float(higher(0.7)) == pytest.approx(slope(lower, 0.7), rel=1e-7)


def test_the_rule_is_what_counts() -> None:
    fun = lambda x: tripled()(jnp.sin(x))
    assert float(grad(fun)(1.0)) == pytest.approx(3 * np.cos(1.0))
    assert float(grad(jit(fun))(1.0)) == pytest.approx(3 * np.cos(1.0))
    assert float(jit(grad(fun))(1.0)) == pytest.approx(3 * np.cos(1.0))
    assert float(grad(grad(fun))(1.0)) == pytest.approx(-3 * np.sin(1.0))
    out, pullback = vjp(fun, 1.0)
    assert (float(out), float(pullback(2.0)[0])) == pytest.approx((np.sin(1.0), 6 * np.cos(1.0)))


def test_vmap_and_grad_in_both_orders() -> None:
    x, y = jnp.arange(3.0), jnp.arange(3.0) + 5
    expected = np.arange(3.0) + 5
    np.testing.assert_allclose(vmap(grad(product()))(x, y), expected)
    np.testing.assert_allclose(grad(lambda x: vmap(product())(x, y).sum())(x), expected)
    np.testing.assert_allclose(jit(vmap(grad(product())))(x, y), expected)
    np.testing.assert_allclose(vmap(jit(grad(product())))(x, y), expected)


@pytest.mark.parametrize(
    ("in_axes", "shapes"), [((0, None), ((3,), ())), ((None, 0), ((), (3,))), ((1, 0), ((2, 3), (3, 2)))]
)
def test_a_batch_sums_the_cotangents_of_what_it_shares(in_axes: Any, shapes: Any) -> None:
    x, y = (jnp.asarray(np.random.default_rng(i).normal(size=s).astype("float32")) for i, s in enumerate(shapes))
    mapped = lambda f: lambda x, y: jnp.sum(vmap(f, in_axes)(x, y) ** 2)
    found = grad(mapped(product()), (0, 1))(x, y)
    expected = grad(mapped(lambda x, y: x * y), (0, 1))(x, y)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


def test_a_shared_argument_sums_a_cotangent_that_is_the_same_for_all() -> None:
    constant = ruled(lambda x, w: x * w, lambda x, w: (x * w, None), lambda _, ct: (ct, 5.0))
    assert float(grad(lambda w: vmap(constant, (0, None))(jnp.ones(3), w).sum())(2.0)) == 15.0


def test_two_batches_and_a_named_axis() -> None:
    nested = vmap(vmap(product(), (0, None)), (None, 0))
    found = grad(lambda w: nested(jnp.ones(3), w).sum())(jnp.ones(4))
    np.testing.assert_allclose(found, 3 * np.ones(4))
    summed = ruled(
        lambda x: lax.psum(x, "i"), lambda x: (lax.psum(x, "i"), None), lambda _, ct: (lax.psum(ct, "i") * 10,)
    )
    found = grad(lambda x: vmap(summed, axis_name="i")(x).sum())(jnp.ones(3))
    np.testing.assert_allclose(found, 30 * np.ones(3))


# --- trees, integers, residuals


def test_a_cotangent_may_stand_for_a_container_with_one_leaf() -> None:
    f = xlamini.custom_vjp(lambda p: jnp.sin(p["x"][0]) * p["y"])
    f.defvjp(lambda p: (f(p), p), lambda p, ct: ({"x": ct * jnp.cos(p["x"][0]) * p["y"], "y": ct},))
    found = xlamini.grad(f)({"x": [1.0], "y": 2.0})
    np.testing.assert_allclose(found["x"][0], 2 * np.cos(1.0), rtol=1e-6)
    assert found["y"] == 1


def test_trees_of_arguments_outputs_and_residuals() -> None:
    def fwd(p: Any, q: Any) -> Any:
        return {"out": p["w"] * q[0], "other": q[1]}, {"p": p, "q": (q[0], None)}

    def bwd(res: Any, ct: Any) -> Any:
        w_bar = ct["out"] * res["q"][0]
        return {"w": w_bar, "unused": None}, [ct["out"] * res["p"]["w"], ct["other"]]

    made = ruled(lambda p, q: fwd(p, q)[0], fwd, bwd)
    total = lambda p, q: made(p, q)["out"] * 2 + made(p, q)["other"]
    p, q = {"w": 3.0, "unused": jnp.ones(2)}, [4.0, 5.0]
    (p_bar, q_bar) = grad(total, (0, 1))(p, q)
    assert (float(p_bar["w"]), [float(x) for x in q_bar]) == (8.0, [6.0, 1.0])
    np.testing.assert_array_equal(p_bar["unused"], np.zeros(2))


@pytest.mark.parametrize("zero", [None, np.zeros((), xlamini.float0), 0, jnp.zeros((), int)])
def test_integer_arguments_take_any_zero(zero: Any) -> None:
    made = ruled(lambda x, n: (x * n, n), lambda x, n: ((x * n, n), n), lambda n, ct: (ct[0] * n, zero))
    assert float(grad(lambda x, n: made(x, n)[0])(2.0, 3)) == 3.0
    bars = grad(lambda x, n: made(x, n)[0], (0, 1), allow_int=True)(2.0, 3)
    assert bars[1].dtype == xlamini.float0
    np.testing.assert_array_equal(vmap(grad(lambda x, n: made(x, n)[0]))(jnp.ones(2), jnp.arange(2)), [0.0, 1.0])


def test_integer_outputs_have_cotangents_of_float0() -> None:
    seen = []
    made = ruled(lambda x: (x, 1), lambda x: ((x, 1), None), lambda _, ct: (seen.append(ct[1].dtype), (ct[0],))[1])
    grad(lambda x: made(x)[0])(1.0)
    assert seen == [xlamini.float0]


def test_numbers_among_residuals_stay_numbers() -> None:
    seen: list[Any] = []

    def bwd(res: Any, ct: Any) -> Any:
        seen.extend(type(x) for x in res)
        return (ct * sum(1 for _ in range(res[0])) * (2 if res[2] else 1),)

    made = ruled(lambda x: x, lambda x: (x, (3, 2.5, True, None)), bwd)
    assert float(grad(made)(1.0)) == 6.0
    np.testing.assert_array_equal(vmap(grad(jit(made)))(jnp.ones(2)), [6.0, 6.0])
    assert set(seen) == {int, float, bool, type(None)}


def test_a_cotangent_of_another_precision_is_rounded() -> None:
    made = ruled(lambda x: x, lambda x: (x, None), lambda _, ct: (ct.astype("bfloat16"),))
    found = grad(lambda x: made(x).sum())(jnp.ones(2, "float16"))
    assert found.dtype == np.float16


def test_python_asks_for_numbers_in_the_function_and_both_rules() -> None:
    made = ruled(
        lambda x: x if x > 0 else -x,
        lambda x: (x, x) if x > 0 else (-x, x),
        lambda x, ct: (ct * 3 if x > 0 else ct * 5,),
    )
    assert (float(grad(made)(2.0)), float(grad(made)(-2.0))) == (3.0, 5.0)
    assert float(grad(grad(lambda x: made(x) ** 2))(2.0)) == 6.0


def test_complex() -> None:
    turned = ruled(lambda z: 2j * z, lambda z: (2j * z, None), lambda _, ct: (2j * ct,))
    plain = grad(lambda z: jnp.real(2j * z * z))(1 + 2j)
    assert complex(grad(lambda z: jnp.real(turned(z) * z))(1 + 2j)) == complex(plain)


# --- symbolic zeros


def test_symbolic_zeros_tell_what_is_not_differentiated() -> None:
    seen: list[Any] = []

    def fwd(x: Any, y: Any) -> Any:
        seen.append((x.perturbed, y.perturbed))
        return (x.value * y.value, y.value * 2), (x.value, y.value)

    def bwd(res: Any, ct: Any) -> Any:
        seen.append(tuple(isinstance(c, custom_derivatives.SymbolicZero) for c in ct))
        return ct[0] * res[1], custom_derivatives.SymbolicZero.from_primal_value(res[1])

    made = ruled(lambda x, y: (x * y, y * 2), fwd, bwd, symbolic_zeros=True)
    assert float(grad(lambda x: made(x, 2.0)[0])(1.0)) == 2.0
    assert seen == [(True, False), (False, True)]
    np.testing.assert_array_equal(vmap(grad(lambda x: made(x, 2.0)[0]))(jnp.ones(2)), [2.0, 2.0])
    assert float(grad(lambda x, y: sum(made(x, y)), 1)(1.0, 2.0)) == 0.0
    values = custom_derivatives.custom_vjp_primal_tree_values([custom_derivatives.CustomVJPPrimal(1.0, False)])
    assert values == [1.0]


# --- both rules


def both() -> Any:
    """The sine, with rules that are wrong by a factor: 10 in forward mode, 3 in reverse mode."""
    made = ruled(lambda x: jnp.sin(x), lambda x: (made(x), x), lambda x, ct: (3 * ct * jnp.cos(x),))

    @made.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        return made(*primals), 10 * tangents[0] * jnp.cos(primals[0])

    return made


def test_both_modes_have_their_rules() -> None:
    cos, sin = np.cos(1.0), np.sin(1.0)
    assert float(jvp(both(), (1.0,), (2.0,))[1]) == pytest.approx(20 * cos)
    assert float(jit(lambda x: jvp(both(), (x,), (2.0,))[1])(1.0)) == pytest.approx(20 * cos)
    assert float(grad(both())(1.0)) == pytest.approx(3 * cos)
    np.testing.assert_allclose(vmap(grad(both()))(jnp.ones(2)), [3 * cos] * 2, rtol=1e-6)
    np.testing.assert_allclose(jvp(vmap(both()), (jnp.ones(2),), (jnp.ones(2),))[1], [10 * cos] * 2, rtol=1e-6)
    np.testing.assert_allclose(vmap(lambda x: jvp(both(), (x,), (1.0,))[1])(jnp.ones(2)), [10 * cos] * 2, rtol=1e-6)
    assert float(grad(lambda x: jvp(both(), (x,), (1.0,))[1])(1.0)) == pytest.approx(-10 * sin)
    assert float(jvp(grad(both()), (1.0,), (1.0,))[1]) == pytest.approx(-3 * sin)


def test_a_rule_for_forward_mode_alone_serves_both() -> None:
    made = xlamini.custom_vjp(lambda x: x)
    made.defjvp(lambda primals, tangents: (primals[0], 5 * tangents[0]))
    assert (float(grad(made)(1.0)), float(jvp(made, (1.0,), (1.0,))[1])) == (5.0, 5.0)


def test_forward_mode_over_reverse_mode_needs_no_forward_rule() -> None:
    made = xlamini.custom_vjp(lambda x: jnp.sin(x))
    made.defvjp(lambda x: (made(x), x), lambda x, ct: (ct * jnp.cos(x),))
    assert float(jvp(grad(made), (1.0,), (1.0,))[1]) == pytest.approx(-np.sin(1.0))
    assert float(xlamini.hessian(made)(1.0)) == pytest.approx(-np.sin(1.0))
    assert float(grad(lambda x: jvp(grad(made), (x,), (1.0,))[1])(1.0)) == pytest.approx(-np.cos(1.0))
    np.testing.assert_allclose(vmap(xlamini.hessian(made))(jnp.ones(2)), [-np.sin(1.0)] * 2, rtol=1e-6)


# --- fixed arguments and closures


def test_nondiff_arguments_reach_the_rules_as_they_are() -> None:
    applied = ruled(
        lambda x, f, mode="up": f(x),
        lambda x, f, mode: (f(x), x),
        lambda f, mode, x, ct: (ct * f(x) * {"up": 1, "down": -1}[mode],),
        nondiff_argnums=(1,),
        nondiff_argnames=("mode",),
    )
    assert float(grad(lambda x: applied(x, jnp.sin))(1.0)) == pytest.approx(np.sin(1.0))
    assert float(grad(lambda x: applied(x, f=jnp.sin, mode="down"))(1.0)) == pytest.approx(-np.sin(1.0))
    np.testing.assert_allclose(vmap(grad(lambda x: applied(x, jnp.cos)))(jnp.zeros(2)), [1.0, 1.0])
    assert float(jit(lambda n, x: grad(lambda x: applied(x, lambda y: y * n))(x))(4.0, 3.0)) == 12.0


def test_keywords_and_defaults_find_their_places() -> None:
    made = ruled(lambda x, k=3.0: x * k, lambda x, k: (x * k, (x, k)), lambda res, ct: (ct * res[1], ct * res[0]))
    assert (float(grad(made)(2.0)), float(grad(lambda x: made(x, k=5.0))(2.0))) == (3.0, 5.0)


def closing(s: Any) -> Any:
    """s * x, with the derivative s * x, all three functions closing over s."""
    return ruled(lambda x: x * s, lambda x: (x * s, x), lambda x, ct: (ct * s * x,))


def test_closures_over_tracers_of_enclosing_programs() -> None:
    assert float(jit(lambda s, x: grad(closing(s))(x))(2.0, 3.0)) == 6.0
    np.testing.assert_allclose(vmap(lambda s, x: grad(closing(s))(x))(jnp.arange(3.0), jnp.ones(3)), np.arange(3.0))
    assert float(grad(lambda s: grad(closing(s))(3.0))(2.0)) == 3.0
    assert float(grad(lambda s: jit(lambda x: grad(closing(s))(x))(3.0))(2.0)) == 3.0
    assert float(grad(lambda x: jit(lambda s, x: closing(s)(x))(4.0, x))(2.0)) == 8.0


def test_closures_over_tracers_of_the_program_that_is_rewritten() -> None:
    held = lambda x: lax.stop_gradient(jnp.sin(x))
    expected = 2 * np.sin(2.0)
    assert float(grad(lambda x: closing(held(x))(x))(2.0)) == pytest.approx(expected)
    assert float(jit(grad(lambda x: jit(lambda y: closing(held(x))(y))(x)))(2.0)) == pytest.approx(expected)
    mapped = lambda x: vmap(lambda s, x: closing(s)(x))(jnp.arange(3.0), jnp.ones(3) * x).sum()
    assert float(grad(mapped)(2.0)) == 6.0
    assert float(grad(jit(mapped))(2.0)) == 6.0
    assert float(grad(xlamini.checkpoint(mapped))(2.0)) == 6.0


def test_bwd_may_close_over_what_is_differentiated() -> None:
    made = lambda w: ruled(lambda x: x * 2, lambda x: (x * 2, None), lambda _, ct: (ct * w,))
    assert float(grad(lambda w: made(w)(w * w))(3.0)) == 3.0 * 6.0
    assert float(grad(lambda w: made(w)(2.0) + w)(3.0)) == 1.0


def test_a_rule_hidden_from_sight_finds_its_tracer_too() -> None:
    hidden: dict[str, Any] = {}
    opaque = type("Opaque", (), {"__slots__": (), "get": lambda self: hidden["s"]})()
    made = ruled(lambda x: x, lambda x: (x, None), lambda _, ct: (ct * opaque.get(),))

    def fun(x: Any) -> Any:
        hidden["s"] = lax.stop_gradient(x) * 2
        return made(x)

    assert float(grad(fun)(3.0)) == 6.0


# --- inside control flow


@pytest.mark.full
@pytest.mark.parametrize("order", [1, 2, 3])
def test_in_scan_cond_and_while(order: int) -> None:
    scan, cond = lax.scan, lax.cond

    def fun(sin: Any, x: Any) -> Any:
        body = lambda c, a: (cond(a > 1, lambda c: sin(c) + a, lambda c: c * sin(c), c), sin(c * a))
        last, rows = scan(body, x, jnp.arange(4.0))
        return last + rows.sum()

    made = sine()
    for wrap in (lambda f: f, jit, lambda f: lambda x: vmap(f)(jnp.ones(2) * x)[0]):
        found, expected = (functools.partial(fun, f) for f in (made, jnp.sin))
        for _ in range(order):
            found, expected = grad(found), grad(expected)
        np.testing.assert_allclose(wrap(found)(0.3), expected(0.3), rtol=2e-5)


def test_around_control_flow() -> None:
    scan, while_loop = lax.scan, lax.while_loop
    doubled = lambda x: while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, s[1] * 2), (0, x))[1]
    made = ruled(doubled, lambda x: (doubled(x), None), lambda _, ct: (doubled(ct),))
    assert float(grad(lambda x: scan(lambda c, _: (made(c), None), x, None, length=2)[0])(1.0)) == 64.0
    np.testing.assert_allclose(vmap(grad(made))(jnp.ones(2)), [8.0, 8.0])


def test_jvp_of_scan_with_both_rules() -> None:
    scan = lax.scan
    fun = lambda x: scan(lambda c, _: (both()(c), None), x, None, length=2)[0]
    cosines = np.cos(1.0) * np.cos(np.sin(1.0))
    assert float(jvp(fun, (1.0,), (1.0,))[1]) == pytest.approx(100 * cosines)
    assert float(grad(fun)(1.0)) == pytest.approx(9 * cosines)


# --- under checkpoint


def remat_program(optimize_remat: bool) -> tuple[Any, Any]:
    made = xlamini.custom_vjp(lambda x: x * 2)
    made.defvjp(lambda x: (x * 3, x), lambda x, ct: (ct * x,), optimize_remat=optimize_remat)
    fun = lambda x: jnp.sin(made(jnp.sin(x)))
    return fun, xlamini.make_jaxpr(xlamini.value_and_grad(xlamini.checkpoint(fun)))(1.0)


def test_optimize_remat_runs_the_function_itself_forward() -> None:
    fun, jaxpr = remat_program(True)
    value = xlamini.value_and_grad(xlamini.checkpoint(fun))(1.0)[0]
    assert float(value) == pytest.approx(np.sin(2 * np.sin(1.0)))
    assert "remat_opt" in str(jaxpr)
    unoptimized, _ = remat_program(False)
    assert float(xlamini.value_and_grad(xlamini.checkpoint(unoptimized))(1.0)[0]) == pytest.approx(
        np.sin(3 * np.sin(1.0))
    )
    assert float(grad(fun)(1.0)) == float(grad(unoptimized)(1.0))
    x = jnp.ones(2)
    np.testing.assert_allclose(vmap(grad(fun))(x), vmap(grad(unoptimized))(x))
    np.testing.assert_allclose(grad(lambda x: vmap(fun)(x).sum())(x), grad(lambda x: vmap(unoptimized)(x).sum())(x))
    assert float(grad(grad(fun))(1.0)) == pytest.approx(float(grad(grad(unoptimized))(1.0)))


# --- programs


def test_the_jaxpr_is_printed_as_in_jax() -> None:
    made = ruled(lambda x, y: jnp.sin(x) * y, lambda x, y: (x, None), lambda _, ct: (ct, ct))
    assert str(xlamini.make_jaxpr(made)(1.0, 2.0)) == (
        "{ lambda ; a:f32[] b:f32[]. let\n"
        "    c:f32[] = custom_vjp_call[\n"
        "      name=<lambda>\n"
        "      bwd=<lambda>\n"
        "      call_jaxpr={ lambda ; d:f32[] e:f32[]. let\n"
        "          f:f32[] = sin d\n"
        "          g:f32[] = mul f e\n"
        "        in (g,) }\n"
        "      fwd=<lambda>\n"
        "      symbolic_zeros=False\n"
        "    ] a b\n"
        "  in (c,) }"
    )


def test_an_eager_loop_compiles_once() -> None:
    made = sine()
    fun = lambda x: grad(lambda x: made(x) * xlamini.jit(made)(x))(x)
    fun(1.0), fun(2.0)
    before = len(shared.programs)
    for i in range(5):
        fun(float(i))
    assert len(shared.programs) == before


def test_programs_that_differ_in_their_rules_alone_are_compiled_once() -> None:
    def run() -> Any:
        return lax.scan(lambda c, _: (tripled()(c), None), jnp.ones(3), None, length=2)[0]

    run(), run()
    before = len(shared.programs)
    run()
    assert len(shared.programs) == before


class Unhashable:
    """A callable, and a pytree with metadata, that nobody can hash."""

    def __init__(self, factor: float):
        self.factor = factor

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unhashable) and self.factor == other.factor

    def __call__(self, residuals: Any, ct: Any) -> Any:
        return (ct * self.factor,)


def test_rules_that_cannot_be_hashed() -> None:
    made = ruled(lambda x: x, lambda x: (x, None), Unhashable(7.0))
    assert float(grad(made)(1.0)) == 7.0
    assert float(grad(xlamini.checkpoint(lambda x: made(x) * 2))(1.0)) == 14.0
    assert float(jit(lambda x: made(x))(1.0)) == 1.0
    again = ruled(lambda x: made(x), lambda x: (made(x), None), Unhashable(3.0))
    assert float(grad(again)(1.0)) == 3.0


def test_the_transpose_of_the_function_is_its_own() -> None:
    made = ruled(lambda x: 2 * x, lambda x: (2 * x, None), lambda _, ct: (100 * ct,))
    assert float(xlamini.linear_transpose(made, 1.0)(1.0)[0]) == 2.0


# --- the debug option


@pytest.mark.full
def test_rules_are_compared_with_finite_differences() -> None:
    right = lambda x, y: sine()(x) * product()(x, y)
    before = xlamini.config.debug_custom_rules
    xlamini.config.update("debug_custom_rules", True)
    try:
        for wrap in (lambda f: f, jit, vmap):
            x, y = (jnp.ones(2), jnp.ones(2) * 2) if wrap is vmap else (1.0, 2.0)
            wrap(grad(right, (0, 1)))(x, y)
            with pytest.raises(ValueError, match=r"custom_vjp \(bwd\): the rule .* finite differences of <lambda>"):
                wrap(grad(lambda x, y: tripled()(x) * y))(x, y)
        scaled = lambda s: ruled(lambda x: x * s, lambda x: (x * s, None), lambda _, ct: (ct * s,))
        assert float(grad(lambda x: jit(lambda s: scaled(s)(x))(2.0))(1.0)) == 2.0
        np.testing.assert_allclose(vmap(lambda s, x: grad(scaled(s))(x))(jnp.arange(2.0), jnp.ones(2)), [0, 1])
        with pytest.raises(ValueError, match="finite differences"):
            grad(closing(3.0))(5.0)
    finally:
        xlamini.config.update("debug_custom_rules", before)


# --- custom_gradient


@pytest.mark.full
def test_custom_gradient() -> None:
    power = xlamini.custom_gradient(lambda x, n=3: (x**n, lambda ct: (ct * n * x ** (n - 1), None)))
    assert (float(power(2.0)), float(grad(power)(2.0)), float(grad(grad(power))(2.0))) == (8.0, 12.0, 12.0)
    assert float(grad(lambda x: power(x, n=2))(2.0)) == 4.0
    halved = xlamini.custom_gradient(lambda d: (d["a"] ** 2, lambda ct: {"a": ct * d["a"], "b": None}))
    bars = jit(grad(halved))({"a": 3.0, "b": 1.0})
    assert (float(bars["a"]), float(bars["b"])) == (3.0, 0.0)
    np.testing.assert_allclose(vmap(grad(lambda x: power(x)))(jnp.arange(3.0)), 3 * np.arange(3.0) ** 2)
    of_batch = grad(lambda x: vmap(lambda x: power(x))(x).sum())(jnp.arange(3.0))
    np.testing.assert_allclose(of_batch, 3 * np.arange(3.0) ** 2)
    picky = xlamini.custom_gradient(lambda x: (x, lambda ct: ct * 2 if x > 0 else ct))
    assert (float(grad(picky)(1.0)), float(grad(picky)(-1.0))) == (2.0, 1.0)
