"""custom_jvp: derivatives to order 3, in all nestings, and what rules are given.

Values that JAX gives for the same programs stand in the tests as numbers.
"""

from __future__ import annotations

import functools
import gc
import weakref
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import lax, numpy as jnp
from xlamini.custom_derivatives import SymbolicZero, zero_from_primal
from xlamini.test_util import check_grads, check_jvp, check_vjp

custom_jvp, grad, jit, jvp, vmap = xlamini.custom_jvp, xlamini.grad, xlamini.jit, xlamini.jvp, xlamini.vmap


@pytest.fixture(autouse=True)
def wide() -> Iterator[None]:
    with xlamini.enable_x64(True):
        yield


def close(found: Any, wanted: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(wanted), rtol=1e-10, atol=1e-12)


def with_rule(fun: Callable[..., Any], rule: Callable[..., Any], **options: Any) -> Any:
    found = custom_jvp(fun)
    found.defjvp(rule, **options)
    return found


@custom_jvp
def f(x: Any, y: Any) -> Any:
    return jnp.sin(x) * y


@f.defjvp
def f_jvp(primals: Any, tangents: Any) -> Any:
    (x, y), (x_dot, y_dot) = primals, tangents
    return f(x, y), jnp.cos(x) * x_dot * y + jnp.sin(x) * y_dot


def triple(x: Any) -> Any:
    """Its rule says that the slope is three times what it is."""
    return with_rule(jnp.sin, lambda p, t: (triple(p[0]), 3 * jnp.cos(p[0]) * t[0]))(x)


# --- derivatives


@pytest.mark.sample(12)
@pytest.mark.parametrize("wrap", [lambda f: f, jit, xlamini.checkpoint])
def test_derivatives_to_order_three(wrap: Any) -> None:
    check_grads(wrap(f), (0.7, jnp.array([1.5, -0.3])), order=3)


@pytest.mark.full
def test_the_rule_is_used_and_not_the_function() -> None:
    for derivative in (grad(triple), jit(grad(triple)), grad(jit(triple)), lambda x: jvp(triple, (x,), (1.0,))[1]):
        close(derivative(0.3), 3 * np.cos(0.3))
    close(grad(grad(triple))(0.3), -3 * np.sin(0.3))
    close(vmap(grad(triple))(jnp.arange(3.0)), 3 * np.cos(np.arange(3.0)))
    close(grad(lambda x: vmap(triple)(x).sum())(jnp.arange(3.0)), 3 * np.cos(np.arange(3.0)))
    close(xlamini.hessian(lambda x: vmap(triple)(x).sum())(jnp.arange(2.0)), np.diag(-3 * np.sin(np.arange(2.0))))


LOOPS = {
    "scan": lambda g, x: lax.scan(lambda c, _: (g(c), None), x, None, length=3)[0],
    "scan over xs": lambda g, x: lax.scan(lambda c, a: (g(c) * a, c), x, jnp.array([1.0, 0.5]))[1].sum(),
    "cond": lambda g, x: lax.cond(x > 0, g, lambda x: x, x),
    "while": lambda g, x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, g(c[1])), (0, x))[1],
    "fori": lambda g, x: lax.fori_loop(0, 3, lambda i, c: g(c) + i, x),
    "jit": lambda g, x: jit(g)(jit(g)(x)),
    "checkpoint": lambda g, x: xlamini.checkpoint(lambda x: g(g(x)))(x),
    "custom_jvp": lambda g, x: with_rule(lambda x: g(x), lambda p, t: jvp(g, p, t))(x),
    "vmap": lambda g, x: vmap(g, axis_name="i")(x * jnp.arange(3.0)).sum(),
}


@pytest.mark.full
@pytest.mark.parametrize("name", LOOPS)
def test_inside_other_constructs(name: str) -> None:
    right = with_rule(lambda x: jnp.sin(x) + x, lambda p, t: (right(*p), (jnp.cos(p[0]) + 1) * t[0]))
    modes = ("fwd",) if name == "while" else ("fwd", "rev")
    program = functools.partial(LOOPS[name], right)
    check_grads(jit(program), (0.4,), order=2, modes=modes)
    plain = functools.partial(LOOPS[name], lambda x: jnp.sin(x) + x)
    xs = jnp.linspace(-1.0, 1.0, 4)
    close(vmap(program)(xs), vmap(plain)(xs))
    push = lambda g: vmap(lambda x: jvp(g, (x,), (1.0,))[1])(xs)
    close(push(program), push(plain))
    if "rev" in modes:
        close(vmap(grad(program))(xs), vmap(grad(plain))(xs))
        close(grad(lambda x: vmap(program)(x).sum())(xs), vmap(grad(plain))(xs))


@pytest.mark.sample(12)
@pytest.mark.parametrize(
    "rule",
    [
        lambda g, p, t: jvp(jit(g), p, t),
        lambda g, p, t: jit(lambda p, t: (g(*p), jnp.cos(p[0]) * t[0]))(p, t),
        lambda g, p, t: (g(*p), lax.scan(lambda c, _: (c * 1.0, None), t[0] * jnp.cos(p[0]), None, length=2)[0]),
        lambda g, p, t: (g(*p), lax.cond(p[0] > 5, lambda x, t: t, lambda x, t: t * jnp.cos(x), p[0], t[0])),
        lambda g, p, t: lax.scan(lambda c, _: ((jnp.sin(p[0]), jnp.cos(p[0]) * t[0]), None), (p[0], t[0]), None, 1)[0],
    ],
    ids=["jvp of jit", "jit", "scan", "cond", "scan of both"],
)
def test_rules_with_inner_programs(rule: Any) -> None:
    ruled = with_rule(jnp.sin, lambda p, t: rule(jnp.sin, p, t))
    check_grads(ruled, (0.4,), order=1)
    check_grads(jit(lambda x: vmap(ruled)(x).sum()), (jnp.arange(2.0),), order=2)


def test_a_rule_that_pushes_through_other_rules() -> None:
    twice = with_rule(lambda x, y: (jnp.sin(x), x * y), lambda p, t: (twice(*p), (t[0] * jnp.cos(p[0]), t[0] * p[1])))
    mapped = xlamini.custom_batching.custom_vmap(lambda x: jnp.sin(x))
    mapped.def_vmap(lambda n, batched, x: (jnp.sin(x), True))
    for inner in (lambda p, t: twice(p[0], t[0] * jnp.cos(p[0]) / p[0]), lambda p, t: jvp(mapped, p, t)):
        ruled = with_rule(jnp.sin, inner)
        close(grad(ruled)(0.4), np.cos(0.4))
        close(vmap(grad(ruled))(jnp.array([0.4, 0.5])), np.cos([0.4, 0.5]))
        close(grad(jit(lambda x, ruled=ruled: vmap(ruled)(x).sum()))(jnp.array([0.4, 0.5])), np.cos([0.4, 0.5]))


@pytest.mark.full
def test_pytrees_and_integers() -> None:
    @custom_jvp
    def g(d: Any, n: Any) -> Any:
        return {"a": d["x"] * d["y"][0] * n, "n": n + 1, "none": None}

    @g.defjvp
    def g_jvp(primals: Any, tangents: Any) -> Any:
        (d, n), (dd, dn) = primals, tangents
        assert dn.dtype == xlamini.float0 and dn.shape == (2,)
        slope = (dd["x"] * d["y"][0] + d["x"] * dd["y"][0]) * n
        return g(d, n), {"a": slope, "n": np.zeros((2,), xlamini.float0), "none": None}

    n = jnp.array([2, 3])
    d = {"x": jnp.array([1.0, 2.0]), "y": [3.0]}
    check_grads(lambda d: g(d, n), (d,), order=2)
    check_grads(lambda d: g(d, n.astype("int8"))["a"], (d,), order=1)
    gradient = grad(lambda d, n: g(d, n)["a"].sum(), (0, 1), allow_int=True)(d, n)
    close(gradient[0]["x"], [6.0, 9.0])
    assert gradient[1].dtype == xlamini.float0
    out, slopes = vmap(lambda x: jvp(lambda x: g({"x": x, "y": [2.0]}, n), (x,), (x,)))(jnp.ones((3, 2)))
    assert out["n"].shape == (3, 2) and slopes["a"].shape == (3, 2)


def test_integer_outputs_need_not_be_batched() -> None:
    def rule(primals: Any, tangents: Any) -> Any:
        x, n = primals
        return (x * n, (0 * x).astype(n.dtype) + n + 1), (tangents[0] * n, tangents[1])

    g = with_rule(lambda x, n: (x * n, n + 1), rule)
    out, count = vmap(g, (0, None), (0, None))(jnp.arange(3.0), jnp.array(4))
    close(out, [0, 4, 8])
    assert int(count) == 5
    assert [float(v) for v in vmap(grad(lambda x, n: g(x, n)[0]), (0, None))(jnp.arange(3.0), 4)] == [4.0] * 3
    late = grad(lambda x: vmap(g, (0, None), (0, None))(x, jnp.array(4))[0].sum())
    close(late(jnp.arange(3.0)), [4.0] * 3)


@pytest.mark.full
def test_complex_and_weak_types() -> None:
    square = with_rule(lambda z: z * z, lambda p, t: (square(*p), 2 * p[0] * t[0]))
    check_grads(square, (1.0 + 2.0j,), order=2)
    close(grad(square, holomorphic=True)(1.0 + 2.0j), 2.0 + 4.0j)
    assert jvp(square, (1.0,), (1.0,))[1].weak_type
    assert not jvp(square, (jnp.float32(1.0),), (jnp.float32(1.0),))[1].weak_type


def test_a_rule_may_return_numbers_and_lists() -> None:
    ruled = with_rule(lambda x: (x, 2.0), lambda p, t: [(p[0], 2.0), (t[0], 0.0)])
    assert float(grad(lambda x: ruled(x)[0] * ruled(x)[1])(1.0)) == 2.0


# --- symbolic zeros, defjvps, fixed arguments


def test_symbolic_zeros() -> None:
    seen = []

    def rule(primals: Any, tangents: Any) -> Any:
        seen.append([type(t) is SymbolicZero for t in tangents])
        slope = sum(t * other for t, other in zip(tangents, primals[::-1], strict=True) if type(t) is not SymbolicZero)
        return primals[0] * primals[1], slope

    product = with_rule(lambda x, y: x * y, rule, symbolic_zeros=True)
    close(grad(product, 0)(2.0, 3.0), 3.0)
    close(grad(product, 1)(2.0, 3.0), 2.0)
    close(grad(lambda x: product(x, x))(2.0), 4.0)
    assert seen == [[False, True], [True, False], [False, False]]
    still = with_rule(lambda x, y: x, lambda p, t: (p[0], t[1]), symbolic_zeros=True)
    assert float(grad(still)(2.0, 3.0)) == 0.0
    assert float(grad(with_rule(lambda x: x, lambda p, t: (p[0], zero_from_primal(p[0], True))))(1.0)) == 0.0


def test_zero_tangents_are_arrays_to_the_rule() -> None:
    product = with_rule(lambda x, y: x * y, lambda p, t: (p[0] * p[1], (-t[1]) * p[0] * -1 + t[0] * p[1]))
    assert [float(g) for g in grad(product, (0, 1))(2.0, 3.0)] == [3.0, 2.0]
    assert [float(grad(product, i)(2.0, 3.0)) for i in (0, 1)] == [3.0, 2.0]


def test_symbolic_zeros_know_their_type() -> None:
    zero = SymbolicZero.from_primal_value(jnp.ones((2, 3)))
    assert (zero.shape, zero.ndim, zero.size, zero.dtype, repr(zero)) == ((2, 3), 2, 6, np.float64, "SymbolicZero")
    assert SymbolicZero.from_primal_value(1).dtype == xlamini.float0
    zeros = zero_from_primal({"x": 1.0, "n": 2})
    assert float(zeros["x"]) == 0.0 and zeros["n"].dtype == xlamini.float0


@pytest.mark.full
def test_defjvps() -> None:
    product = custom_jvp(lambda x, y, n: {"out": x["a"] * y * n})
    product.defjvps(
        lambda dx, out, x, y, n: {"out": dx["a"] * y * n}, lambda dy, out, x, y, n: {"out": out["out"] / y * dy}, None
    )
    check_grads(lambda x, y: product(x, y, 2), ({"a": 2.0}, 3.0), order=2)
    close(grad(lambda x: product({"a": x, "b": 1.0}, 3.0, 2.0)["out"])(1.0), 6.0)
    alone = custom_jvp(lambda x, y: x * y)
    alone.defjvps(None, lambda dy, out, x, y: x * dy)
    assert [float(g) for g in grad(alone, (0, 1))(2.0, 3.0)] == [0.0, 2.0]
    none = custom_jvp(lambda x: x)
    none.defjvps(None)
    assert float(grad(none)(1.0)) == 0.0


@pytest.mark.full
def test_fixed_arguments() -> None:
    @functools.partial(custom_jvp, nondiff_argnums=(0, 2))
    def apply(g: Any, x: Any, options: Any) -> Any:
        return g(x) * options["scale"]

    @apply.defjvp
    def apply_jvp(g: Any, options: Any, primals: Any, tangents: Any) -> Any:
        (x,), (x_dot,) = primals, tangents
        return apply(g, x, options), options["scale"] * jvp(g, (x,), (x_dot,))[1]

    check_grads(lambda x: apply(jnp.tanh, x, {"scale": 2.0}), (0.3,), order=2)
    close(grad(apply, 1)(jnp.sin, 0.3, options={"scale": 2.0}), 2 * np.cos(0.3))
    close(vmap(lambda x: apply(jnp.sin, x, {"scale": x}))(jnp.arange(2.0)), np.sin(np.arange(2.0)) * np.arange(2.0))


def test_fixed_arguments_by_name_and_defaults() -> None:
    @functools.partial(custom_jvp, nondiff_argnames="mode")
    def g(x: Any, mode: str = "sin") -> Any:
        return getattr(jnp, mode)(x)

    @g.defjvp
    def g_jvp(mode: str, primals: Any, tangents: Any) -> Any:
        return g(primals[0], mode), tangents[0] * {"sin": 2.0, "cos": 5.0}[mode]

    assert [float(grad(g)(0.1)), float(grad(lambda x: g(x, mode="cos"))(0.1))] == [2.0, 5.0]
    assert float(grad(lambda x: g(mode="cos", x=x))(0.1)) == 5.0


# --- closures


@pytest.mark.full
def test_functions_and_rules_close_over_arrays() -> None:
    weights = jnp.array([1.0, 2.0, 3.0])
    weighted = with_rule(lambda x: weights * x, lambda p, t: (weighted(*p), weights * t[0]))
    check_grads(weighted, (2.0,), order=2)
    check_grads(lambda x: vmap(jit(weighted))(x), (jnp.arange(2.0),), order=2)
    close(lax.scan(lambda c, _: (c + weighted(c).sum(), None), 1.0, None, length=2)[0], 49.0)


@pytest.mark.full
def test_functions_and_rules_close_over_tracers() -> None:
    def program(a: Any, x: Any) -> Any:
        scaled = with_rule(lambda x: jnp.sin(x) * a, lambda p, t: (scaled(*p), jnp.cos(p[0]) * a * t[0]))
        return scaled(x)

    slope = lambda a, x: a * np.cos(x)
    for wrap in (lambda g: g, jit, lambda g: lambda a, x: jit(g)(a, x)):
        close(wrap(grad(wrap(program), 1))(2.0, 0.3), slope(2.0, 0.3))
        close(wrap(grad(grad(wrap(program), 1), 1))(2.0, 0.3), -2.0 * np.sin(0.3))
    a, x = jnp.array([1.0, 2.0, 3.0]), jnp.array([0.1, 0.2, 0.3])
    close(grad(lambda x: vmap(program)(a, x).sum())(x), slope(a, np.array(x)))
    close(vmap(grad(program, 1))(a, x), slope(a, np.array(x)))
    close(grad(lambda x: vmap(vmap(program, (None, 0)), (0, None))(a, x).sum())(x), slope(6.0, np.array(x)))
    close(grad(lambda x: lax.scan(lambda c, a: (c + program(a, x), None), 0.0, a)[0])(0.3), slope(6.0, 0.3))


def test_a_rule_may_close_over_what_is_differentiated() -> None:
    def program(x: Any) -> Any:
        g = with_rule(lambda y: y * y, lambda p, t: (g(*p), x * t[0]))
        return g(x)

    close(grad(program)(3.0), 3.0)
    close(grad(grad(program))(3.0), 1.0)
    close(grad(lambda x: vmap(program)(x).sum())(jnp.arange(3.0)), np.arange(3.0))
    close(grad(jit(lambda x: lax.scan(lambda c, _: (program(c), None), x, None, length=2)[0]))(3.0), 27.0)


def test_objects_methods_and_partials_hold_tracers() -> None:
    class Model:
        def __init__(self, scale: Any):
            self.scale = {"s": [scale]}

        def rule(self, primals: Any, tangents: Any) -> Any:
            return primals[0], self.scale["s"][0] * tangents[0]

    def by_default(primals: Any, tangents: Any, a: Any = None) -> Any:
        return primals[0], a * tangents[0]

    def program(a: Any, x: Any) -> Any:
        first = with_rule(lambda x: x, Model(a).rule)
        second = with_rule(lambda x: x, functools.partial(by_default, a=a))
        through_jit = with_rule(lambda x: x, lambda p, t: (p[0], jit(lambda t: a * t)(t[0])))
        fixed = custom_jvp(lambda x, model: x, nondiff_argnums=(1,))
        fixed.defjvp(lambda model, p, t: model.rule(p, t))
        return first(second(through_jit(fixed(x, Model(a)))))

    a = jnp.array([2.0, 3.0])
    close(grad(lambda x: vmap(program)(a, x).sum())(jnp.ones(2)), [16.0, 81.0])


# --- Python on values


def test_python_control_flow_on_values() -> None:
    @custom_jvp
    def branch(x: Any) -> Any:
        return x * x if x > 0 else -x

    @branch.defjvp
    def branch_jvp(primals: Any, tangents: Any) -> Any:
        (x,), (x_dot,) = primals, tangents
        return branch(x), 2 * x * x_dot if x > 0 else -x_dot

    derivative: Any = branch
    for wanted in ([9.0, 3.0], [6.0, -1.0], [2.0, 0.0], [0.0, 0.0]):
        assert [float(derivative(3.0)), float(derivative(-3.0))] == wanted
        derivative = grad(derivative)
    assert float(xlamini.hessian(branch)(3.0)) == 2.0
    assert float(grad(lambda x: branch(branch(x) - 1.0))(2.0)) == 24.0
    assert float(vmap(lambda y: grad(branch)(2.0) * y)(jnp.ones(2))[0]) == 4.0


def test_called_eagerly_it_is_the_function() -> None:
    seen = []
    plain = with_rule(lambda x: seen.append(x) or x, lambda p, t: (p[0], t[0]))
    assert plain(2.0) == 2.0 and plain(x="text") == "text"
    assert seen == [2.0, "text"]


@pytest.mark.full
def test_a_recursive_function() -> None:
    @functools.partial(custom_jvp, nondiff_argnums=(1,))
    def power(x: Any, n: int) -> Any:
        return jnp.ones_like(x) if n == 0 else x * power(x, n - 1)

    @power.defjvp
    def power_jvp(n: int, primals: Any, tangents: Any) -> Any:
        (x,), (x_dot,) = primals, tangents
        return power(x, n), n * power(x, n - 1) * x_dot if n else jnp.zeros_like(x)

    check_grads(lambda x: power(x, 4), (1.3,), order=2)


@pytest.mark.full
def test_arrays_of_a_finished_gradient_are_freed() -> None:
    xs = jnp.arange(3.0)
    noted = weakref.ref(xs)
    close(grad(lambda x: f(x, 2.0).sum())(xs), 2 * np.cos(np.arange(3.0)))
    del xs
    gc.collect()
    assert noted() is None


# --- programs


def test_programs_print_as_in_jax(snapshot: Any) -> None:
    with xlamini.enable_x64(False):
        gradient = str(xlamini.make_jaxpr(grad(f))(1.0, 2.0))
        mapped = str(xlamini.make_jaxpr(vmap(f, (0, None)))(jnp.ones(3), 2.0))
    snapshot("jaxpr_custom_jvp", f"{gradient}\n{mapped}")


def test_a_program_is_compiled_once(monkeypatch: pytest.MonkeyPatch) -> None:
    from xlamini.staging.run.eager import program_cache

    compiled = []
    original = program_cache.CompileRequest
    monkeypatch.setattr(program_cache, "CompileRequest", lambda *args: compiled.append(args[1]) or original(*args))
    for i in range(3):
        grad(lambda x: (with_rule(jnp.sin, lambda p, t: (p[0], jnp.cos(p[0]) * t[0]))(x) * 3.25).sum())(jnp.ones(7) + i)
    assert len(compiled) <= 1


def test_the_function_is_transposed_if_it_is_linear() -> None:
    twice = with_rule(lambda x, y: 2 * x + y, lambda p, t: (p[0], t[0]))
    close(xlamini.linear_transpose(lambda x: twice(x, 3 * x), 1.0)(1.0)[0], 5.0)


def test_named_axes_inside_rules() -> None:
    mean = lambda x: x - lax.pmean(x, "i")
    centred = with_rule(mean, lambda p, t: (mean(*p), 2 * mean(t[0])))
    ct = np.array([1.0, 0.0, 0.0])
    pull = xlamini.vjp(lambda x: vmap(centred, axis_name="i")(x), jnp.arange(3.0))[1]
    close(pull(ct)[0], 2 * (ct - 1 / 3))


# --- the flag debug_custom_rules


@pytest.fixture
def debugging() -> Iterator[None]:
    with xlamini.core.flags.config.debug_custom_rules(True):
        yield


@pytest.mark.sample(12)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "complex64"])
def test_right_rules_pass_the_comparison(debugging: None, dtype: str) -> None:
    x = jnp.arange(3.0).astype(dtype)
    for program in (f, jit(f), lambda x, y: vmap(f)(x, y), lambda x, y: jvp(f, (x, y), (x, y))[1]):
        jvp(program, (x, x + 1), (x, x))


def test_closures_pass_the_comparison(debugging: None) -> None:
    def program(a: Any, x: Any) -> Any:
        scaled = with_rule(lambda x: jnp.sin(x) * a, lambda p, t: (scaled(*p), jnp.cos(p[0]) * a * t[0]))
        return scaled(x)

    for wrap in (lambda g: g, jit):
        close(grad(grad(wrap(program), 1), 1)(2.0, 0.3), -2.0 * np.sin(0.3))


@pytest.mark.parametrize("wrap", [lambda g: g, jit])
def test_a_wrong_rule_is_found_out(debugging: None, wrap: Any) -> None:
    wrong = with_rule(lambda x, y: {"out": x * y}, lambda p, t: ({"out": p[0] * p[1]}, {"out": t[0] * p[1] * 2}))
    with pytest.raises(ValueError, match=r"the tangent of output\['out'\] is .* but finite differences of .* give"):
        wrap(grad(wrap(lambda x: wrong(x, 3.0)["out"])))(2.0)


# --- check_grads


@pytest.mark.full
def test_check_grads_finds_mistakes_of_each_order() -> None:
    wrong = with_rule(lambda x: x**3, lambda p, t: (p[0] ** 3, 3.1 * p[0] ** 2 * t[0]))
    flat = with_rule(lambda x: x**3, lambda p, t: (p[0] ** 3, 3 * lax.stop_gradient(p[0]) ** 2 * t[0]))
    for mode in ("fwd", "rev"):
        with pytest.raises(AssertionError, match="jvp" if mode == "fwd" else "vjp"):
            check_grads(wrong, (2.0,), order=1, modes=(mode,))
        check_grads(flat, (2.0,), order=1, modes=(mode,))
        with pytest.raises(AssertionError, match="of"):
            check_grads(flat, (2.0,), order=2, modes=(mode,))
    with pytest.raises(ValueError, match="modes must be"):
        check_grads(flat, (2.0,), 1, modes=("backward",))


def test_check_jvp_and_check_vjp() -> None:
    check_jvp(jnp.sin, functools.partial(jvp, jnp.sin), (1.0,))
    check_vjp(jnp.sin, functools.partial(xlamini.vjp, jnp.sin), (1.0,))
    with pytest.raises(AssertionError, match="outputs"):
        check_jvp(jnp.sin, functools.partial(jvp, jnp.cos), (1.0,))
    with pytest.raises(AssertionError, match="pairing"):
        check_vjp(jnp.sin, lambda x: (jnp.sin(x), lambda ct: (ct,)), (1.0,))
