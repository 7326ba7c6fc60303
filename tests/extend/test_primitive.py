"""Primitives made by name: values and derivatives in all compositions, beside the same function written plainly."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import checkpoint, extend, grad, hessian, jit, jvp, lax, linearize, numpy as jnp, vmap
from xlamini.core.caching.digest import NoDigest, digest
from xlamini.core.program.bindable import primitives
from xlamini.errors import MissingRule
from xlamini.interpreters.expand import expand


@pytest.fixture(autouse=True)
def no_new_primitives() -> Iterator[None]:
    """What a test adds to the language is gone after it."""
    before = len(primitives)
    yield
    del primitives[before:]


TABLE = np.array([0.5, 1.5, 3.0], np.float32)


def plain(x: Any, scale: Any = (2.0, 1.0)) -> Any:
    return jnp.sin(x) * jnp.sum(TABLE) * scale[0] + x * scale[1]


def aligned(axis: Any, x: Any, dim: int | None) -> Any:
    return jnp.broadcast_to(x, (axis.size, *x.shape)) if dim is None else jnp.moveaxis(x, dim, 0)


def slope(pure: bool) -> extend.Primitive:
    """`slope * t` of `plain`, linear in `t`: its transpose is a rule."""
    slope_p, table = extend.Primitive("slope", pure=pure), jnp.asarray(TABLE)
    extend.shape_rule[slope_p] = lambda x, t, *, scale: extend.ShapedArray(list(t.shape), t.dtype)
    extend.expand_rule[slope_p] = lambda x, t, *, scale: (jnp.cos(x) * jnp.sum(table) * scale[0] + scale[1]) * t

    @extend.transpose_rule(slope_p)
    def _(ct: Any, x: Any, t: Any, **params: Any) -> Any:
        assert extend.is_linear(t) and not extend.is_linear(x)
        return None, slope_p.bind(x, ct, **params)

    @extend.jvp_rule(slope_p)
    def _(primals: Any, tangents: Any, *, scale: Any) -> Any:
        (x, t), (dx, dt) = primals, tangents
        first = extend.Zero.from_primal_value(x)
        if not extend.is_zero(dx):
            first = -jnp.sin(x) * jnp.sum(table) * scale[0] * t * dx
        second = dt if extend.is_zero(dt) else slope_p.bind(x, dt, scale=scale)
        return slope_p.bind(x, t, scale=scale), extend.sum_of_tangents(first, second)

    @extend.batch_rule(slope_p)
    def _(axis: Any, operands: Any, dims: Any, **params: Any) -> Any:
        return slope_p.bind(*(aligned(axis, x, d) for x, d in zip(operands, dims, strict=True)), **params), 0

    return slope_p


def wave(pure: bool, params: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """`plain` as a primitive, whose expansion captures an array."""
    wave_p, slope_p, table = extend.Primitive("wave", pure=pure), slope(pure), jnp.asarray(TABLE)

    @extend.jvp_rule(wave_p)
    def _(primals: Any, tangents: Any, **params: Any) -> Any:
        (x,), (t,) = primals, tangents
        return wave_p.bind(x, **params), slope_p.bind(x, t, **params)

    @extend.batch_rule(wave_p)
    def _(axis: Any, operands: Any, dims: Any, **params: Any) -> Any:
        assert type(dims) is tuple and axis.size == operands[0].shape[dims[0]]
        return wave_p.bind(*operands, **params), dims[0]

    @extend.expand_rule(wave_p)
    def _(x: Any, *, scale: Any) -> Any:
        return jnp.sin(x) * jnp.sum(table) * scale[0] + x * scale[1]

    extend.shape_rule[wave_p] = lambda x, *, scale: extend.ShapedArray(list(x.shape), x.dtype)
    return lambda x: wave_p.bind(x, scale=params((2.0, 1.0)))


WAVES = [pytest.param(True, tuple, id="pure"), pytest.param(False, tuple, id="any"),
         pytest.param(False, list, id="lists"), pytest.param(False, np.array, id="arrays")]
X = np.array([0.3, -1.2, 2.0], np.float32)


def loop(f: Any) -> Any:
    def total(x: Any) -> Any:
        return lax.scan(lambda carry, a: (f(carry) * 0.1 + a, carry), x, jnp.arange(3.0))[0].sum()

    return total


def branch(f: Any) -> Any:
    return lambda x: lax.cond(x.sum() > 0, f, lambda y: y * 2.0, x).sum()


def repeated(f: Any) -> Any:
    return lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, f(c[1]) * 0.1), (0, x))[1]


def total(f: Any) -> Any:
    return lambda x: f(x).sum()


COMPOSITIONS: dict[str, Callable[[Any], Callable[[Any], Any]]] = {
    "value": lambda f: f,
    "jit": jit,
    "grad": lambda f: grad(total(f)),
    "jit of grad": lambda f: jit(grad(total(f))),
    "grad of jit": lambda f: grad(total(jit(f))),
    "vmap": vmap,
    "vmap of grad": lambda f: vmap(grad(f)),
    "grad of vmap": lambda f: grad(total(vmap(f))),
    "jit of vmap of grad": lambda f: jit(vmap(grad(f))),
    "second derivative": lambda f: vmap(grad(grad(f))),
    "hessian": lambda f: hessian(total(f)),
    "jvp": lambda f: lambda x: jvp(f, (x,), (x,)),
    "linearize": lambda f: lambda x: linearize(f, x)[1](x),
    "checkpoint": lambda f: grad(total(checkpoint(f))),
    "scan": loop,
    "grad of scan": lambda f: grad(loop(f)),
    "vmap of grad of scan": lambda f: vmap(grad(loop(f))),
    "grad of checkpoint of scan": lambda f: jit(grad(checkpoint(loop(f)))),
    "grad of cond": lambda f: grad(branch(f)),
    "vmap of grad of cond": lambda f: vmap(grad(branch(f))),
    "while": repeated,
    "jit of while": lambda f: jit(repeated(f)),
    "lowered": lambda f: lambda x: jit(f).lower(x).compile()(x),
}


@pytest.mark.parametrize(("pure", "params"), WAVES)
@pytest.mark.parametrize("name", COMPOSITIONS)
def test_as_the_plain_function(name: str, pure: bool, params: Any) -> None:
    composed = COMPOSITIONS[name]
    found, wanted = composed(wave(pure, params))(X), composed(plain)(X)
    xlamini.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-5), found, wanted)


def test_transformations_see_the_primitive_and_the_program_does_not() -> None:
    f = wave(False, tuple)
    assert "wave[" in str(xlamini.make_jaxpr(jit(f))(1.0))
    text = jit(f).lower(np.float32(1)).as_text()
    assert "stablehlo.sine" in text
    assert "5.0" not in text, "the captured table is an argument of the program, no constant"
    assert text.count("%arg") >= 2


@pytest.mark.full
def test_an_own_primitive_takes_a_rule_and_gives_it_back() -> None:
    """The sum of derivatives through both: the rule that is given is used at once, and the class's again after."""
    f = jit(grad(lambda x: lax.sin(x)))
    before = f(1.0)
    extend.jvp_rule[lax.sin_p] = lambda primals, tangents: (lax.sin(primals[0]), 7.0 * tangents[0])
    try:
        assert lax.sin_p in extend.jvp_rule
        np.testing.assert_allclose([f(1.0), grad(lax.sin)(1.0), vmap(grad(lax.sin))(X)[0]], 7.0)
    finally:
        del extend.jvp_rule[lax.sin_p]
    np.testing.assert_allclose([f(1.0), grad(lax.sin)(1.0)], [before, np.cos(1.0)], rtol=1e-6)


def test_rules_of_own_primitives_are_read_and_called() -> None:
    out, tangent = extend.jvp_rule[lax.sin_p]((jnp.float32(1.0),), (jnp.float32(2.0),))
    np.testing.assert_allclose([out, tangent], [np.sin(1.0), 2 * np.cos(1.0)], rtol=1e-6)
    ct = extend.Linear(extend.ShapedArray((), np.float32))
    found = extend.transpose_rule[lax.mul_p](jnp.float32(3.0), ct, jnp.float32(2.0))
    np.testing.assert_allclose(found[0], 6.0)
    outs, dims = extend.batch_rule[lax.sin_p](xlamini.core.Axis(3), (jnp.asarray(X),), (0,))
    np.testing.assert_allclose(outs, np.sin(X), rtol=1e-6)
    assert dims == 0
    assert lax.mul_p in extend.transpose_rule and lax.sin_p not in extend.transpose_rule


@pytest.mark.full
def test_a_rule_that_is_replaced_is_used_from_then_on() -> None:
    p = extend.Primitive("changing", pure=True)
    extend.shape_rule[p] = lambda x: x
    extend.expand_rule[p] = lambda x: x + 1.0
    f = jit(p.bind)
    assert (f(1.0), p.bind(1.0)) == (2.0, 2.0)
    extend.expand_rule[p] = lambda x: x + 10.0
    assert (f(1.0), p.bind(1.0)) == (11.0, 11.0)


def test_an_implementation_runs_when_nothing_traces() -> None:
    p, seen = extend.Primitive("measured"), []
    extend.shape_rule[p] = lambda x: x

    @extend.implementation(p)
    def _(x: Any) -> Any:
        seen.append(type(x))
        return np.asarray(x) * 3

    np.testing.assert_allclose(p.bind(X), 3 * X)
    assert seen == [np.ndarray]
    extend.jvp_rule[p] = lambda primals, tangents: (p.bind(*primals), 3 * tangents[0])
    np.testing.assert_allclose(grad(lambda x: (p.bind(x) ** 2).sum())(X), 18 * X, rtol=1e-6)
    with pytest.raises(MissingRule, match=r"primitive 'measured' has no lower rule; give it one: @extend.expand_rule"):
        jit(p.bind)(X)


def test_several_results_and_unused_ones() -> None:
    p = extend.Primitive("sincos", multiple_results=True)
    extend.shape_rule[p] = lambda x, *, wanted: [x] * sum(wanted)
    both = (jnp.sin, jnp.cos)
    extend.expand_rule[p] = lambda x, *, wanted: [f(x) for f, w in zip(both, wanted, strict=True) if w]

    @extend.dce_rule(p)
    def _(used: Any, *, wanted: Any) -> Any:
        return [True], list(used), {"wanted": tuple(used)}

    np.testing.assert_allclose(p.bind(X, wanted=(True, True)), [np.sin(X), np.cos(X)], rtol=1e-6)
    text = jit(lambda x: p.bind(x, wanted=(True, True))[1]).lower(X).as_text()
    assert "cosine" in text and "sine %" not in text.replace("cosine", "")


@pytest.mark.parametrize("pure", [True, False])
def test_a_lowering_by_hand(pure: bool) -> None:
    p = extend.Primitive("doubled", pure=pure)
    extend.shape_rule[p] = lambda x: x

    @extend.lower_rule(p)
    def _(ctx: Any, x: Any) -> Any:
        return ctx.op("stablehlo.add", x, x)

    np.testing.assert_allclose(p.bind(X), 2 * X)
    np.testing.assert_allclose(jit(lambda x: p.bind(p.bind(x)) + p.bind(x))(X), 6 * X)


def test_a_lowering_by_hand_with_params_that_cannot_be_hashed() -> None:
    p = extend.Primitive("by_hand")
    extend.shape_rule[p] = lambda x, *, opts: x
    extend.lower_rule[p] = lambda ctx, x, *, opts: ctx.op("stablehlo.add", x, x)
    extend.batch_rule[p] = lambda axis, xs, dims, **params: (p.bind(*xs, **params), dims[0])
    extend.jvp_rule[p] = lambda ps, ts, **params: (p.bind(*ps, **params), p.bind(*ts, **params))
    extend.transpose_rule[p] = lambda ct, x, **params: [p.bind(ct, **params)]

    def f(x: Any) -> Any:
        return p.bind(x, opts=[1, {"a": np.ones(2)}])

    for value in (f(X), jit(f)(X), vmap(f)(X), jit(vmap(f))(X)):
        np.testing.assert_allclose(value, 2 * X)
    slope = vmap(grad(lambda x: jnp.sin(f(x))))(X)
    np.testing.assert_allclose(slope, 2 * np.cos(2 * X), rtol=1e-5)
    assert lax.scan(lambda c, a: (f(c), a), 1.0, X)[0] == 8.0


@pytest.mark.full
def test_the_disk_cache_does_not_know_a_lowering_by_hand() -> None:
    """Another process may have another rule of that name; what an expansion consists of it knows."""
    p = extend.Primitive("digested")
    extend.shape_rule[p] = lambda x: x
    extend.lower_rule[p] = lambda ctx, x: ctx.op("stablehlo.add", x, x)
    with pytest.raises(NoDigest):
        digest(xlamini.make_jaxpr(p.bind)(1.0).jaxpr)
    extend.expand_rule[p] = lambda x: 2 * x
    assert digest(expand(xlamini.make_jaxpr(p.bind)(1.0).jaxpr))


def test_literals_reach_rules_as_arrays() -> None:
    p, seen = extend.Primitive("seen"), []
    extend.shape_rule[p] = lambda x, y: x

    @extend.jvp_rule(p)
    def _(primals: Any, tangents: Any) -> Any:
        seen.extend(primals)
        return p.bind(*primals), tangents[0] * primals[1]

    extend.expand_rule[p] = lambda x, y: x * y.astype(x.dtype)
    assert grad(lambda x: p.bind(x, 3.0))(2.0) == 3.0
    assert jit(lambda x: linearize(lambda y: p.bind(y, 3.0), x)[1](1.0))(2.0) == 3.0
    assert {isinstance(x, xlamini.Array) for x in seen} == {True}


@pytest.mark.full
def test_a_table_with_another_convention_shows_the_same_rules() -> None:
    """As a library of the other convention has it: batch rules take operands and dims, and no axis."""
    batchers = extend.RuleTable(
        "batch",
        lambda p, rule: lambda axis, operands, dims, /, **params: rule(tuple(operands), tuple(dims), **params),
        lambda p, method: lambda operands, dims, **params: method(axis_of(operands, dims), operands, dims, **params),
    )

    def axis_of(operands: Any, dims: Any) -> Any:
        return next(extend.Axis(x.shape[d]) for x, d in zip(operands, dims, strict=True) if d is not None)

    p = extend.Primitive("tripled")
    extend.shape_rule[p] = lambda x: x
    extend.expand_rule[p] = lambda x: 3 * x
    rule = batchers[p] = lambda operands, dims: (p.bind(*operands), dims[0])
    assert batchers[p] is rule and p in extend.batch_rule
    np.testing.assert_allclose(vmap(p.bind)(X), 3 * X)
    np.testing.assert_allclose(extend.batch_rule[p](extend.Axis(3), (jnp.asarray(X),), (0,))[0], 3 * X)
    np.testing.assert_allclose(batchers[lax.sin_p]((jnp.asarray(X),), (0,))[0], np.sin(X), rtol=1e-6)
    extend.batch_rule[p] = lambda axis, operands, dims: (5 * operands[0], dims[0])
    np.testing.assert_allclose(vmap(p.bind)(X), 5 * X)
    np.testing.assert_allclose(batchers[p]((X,), (0,))[0], 5 * X)


def test_the_size_of_the_axis_serves_operands_without_it() -> None:
    p = extend.Primitive("counted")
    extend.shape_rule[p] = lambda x, y: x
    extend.expand_rule[p] = lambda x, y: x + y
    seen = []

    @extend.batch_rule(p)
    def _(axis: Any, operands: Any, dims: Any) -> Any:
        seen.append((axis.size, axis.name, dims))
        x, y = (aligned(axis, v, d) for v, d in zip(operands, dims, strict=True))
        return p.bind(x, y), 0

    np.testing.assert_allclose(vmap(p.bind, (None, 0), axis_name="i")(1.0, X), 1 + X)
    assert seen[0] == (3, "i", (None, 0))
    np.testing.assert_allclose(vmap(vmap(p.bind, (None, 0)), (0, None))(X, X), X[:, None] + X)


def test_params_may_have_the_names_of_a_rules_arguments() -> None:
    p = extend.Primitive("named")
    names = {"axis": 1, "operands": 2, "dims": 3, "primals": 4, "ct": 5, "used": 6, "rule": 7}
    extend.shape_rule[p] = lambda x, **params: x
    extend.expand_rule[p] = lambda x, **params: x * sum(params.values())
    extend.jvp_rule[p] = lambda ps, ts, **params: (p.bind(*ps, **params), p.bind(*ts, **params))
    extend.transpose_rule[p] = lambda cts, x, **params: [p.bind(cts, **params)]
    extend.batch_rule[p] = lambda mapped, xs, where, **params: (p.bind(*xs, **params), where[0])
    np.testing.assert_allclose(vmap(grad(lambda x: p.bind(x, **names)))(X), 28.0)


def test_effects_keep_an_equation() -> None:
    p = extend.Primitive("noted")
    noted = extend.Effect("noted")
    extend.shape_rule[p] = lambda x: x
    extend.effects_rule[p] = lambda x: {noted} if x.ndim else set()
    extend.expand_rule[p] = lambda x: x
    jaxpr = xlamini.make_jaxpr(lambda x: (p.bind(x), x)[1])(X)
    assert jaxpr.effects == {noted}
    assert not xlamini.make_jaxpr(p.bind)(1.0).effects
    np.testing.assert_allclose(jit(p.bind)(X), X)


@pytest.mark.parametrize(("give", "message"), [
    (lambda p: extend.shape_rule.__setitem__(p, lambda x: 3), r"the shape_rule rule of 'bad' must return types"),
    (lambda p: extend.jvp_rule.__setitem__(p, lambda ps, ts: ps[0]), r"the jvp rule of 'bad' must return a pair"),
    (lambda p: extend.jvp_rule.__setitem__(p, lambda ps, ts: (ps[0], ts[0].sum())),
     r"jvp rule of 'bad' returned a tangent of type float32\[\] for a value of type float32\[3\]"),
    (lambda p: extend.expand_rule.__setitem__(p, lambda x: x.sum()),
     r"the expand rule of 'bad' returns float32\[\], but its shape rule says float32\[3\]; make the two agree"),
    (lambda p: extend.batch_rule.__setitem__(p, lambda axis, xs, ds: xs[0][0]), r"the batch rule of 'bad' must return"),
])  # fmt: skip
def test_a_wrong_rule_is_named(give: Any, message: str) -> None:
    p = extend.Primitive("bad")
    extend.shape_rule[p] = lambda x: x
    extend.expand_rule[p] = lambda x: x
    extend.jvp_rule[p] = lambda ps, ts: (ps[0], ts[0])
    give(p)
    with pytest.raises(TypeError, match=message):
        grad(lambda x: p.bind(x).sum())(X)
        jit(p.bind)(X)
        vmap(p.bind)(X)


def test_a_wrong_transpose_rule_is_named() -> None:
    p = extend.Primitive("bad")
    extend.shape_rule[p] = lambda x: x
    extend.expand_rule[p] = lambda x: 2 * x
    extend.jvp_rule[p] = lambda ps, ts: (p.bind(*ps), p.bind(*ts))
    extend.transpose_rule[p] = lambda ct, x: ct
    with pytest.raises(TypeError, match=r"transpose rule of 'bad' must return 1 cotangents, one per operand, got"):
        grad(lambda x: p.bind(x).sum())(X)


@pytest.mark.full
def test_a_missing_rule_says_what_to_write() -> None:
    p = extend.Primitive("empty")
    with pytest.raises(MissingRule, match=r"primitive 'empty' has no shape_rule rule; .*@extend\.shape_rule"):
        jit(p.bind)(1.0)
    extend.shape_rule[p] = lambda x: x
    with pytest.raises(MissingRule, match=r"primitive 'empty' has no jvp rule; .*@extend\.jvp_rule"):
        grad(p.bind)(1.0)


def test_bad_uses_of_tables() -> None:
    with pytest.raises(TypeError, match="jvp is a rule of a primitive, got 'sin' of type str"):
        extend.jvp_rule["sin"] = lambda: None  # type: ignore[index]
    p = extend.Primitive("p")
    with pytest.raises(TypeError, match="the jvp rule of 'p' must be a function, got 3"):
        extend.jvp_rule[p] = 3  # type: ignore[assignment]
    with pytest.raises(KeyError):
        extend.jvp_rule[p]
    with pytest.raises(KeyError):
        del extend.jvp_rule[lax.sin_p]
    with pytest.raises(TypeError, match="'sin' is compiled wherever it runs"):
        extend.implementation[lax.sin_p] = np.sin
    with pytest.raises(TypeError, match="name must be a string, got 3"):
        extend.Primitive(3)  # type: ignore[arg-type]
