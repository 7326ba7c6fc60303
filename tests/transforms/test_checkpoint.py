"""checkpoint: the same numbers as without it, fewer values kept, and what is computed again stays so under XLA."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.support.checks import assert_close
from xlamini import ad_checkpoint, checkpoint, checkpoint_policies, grad, jit, lax, numpy as jnp, random, vmap
from xlamini.ad_checkpoint import checkpoint_name, saved_residuals
from xlamini.core.flags.jax_flags import log_checkpoint_residuals
from xlamini.core.program.avals import ShapedArray
from xlamini.core.program.effects import Effect, debug_effect
from xlamini.core.program.jaxpr import Equation, Jaxpr, subjaxprs
from xlamini.core.program.primitive import Primitive

W = np.linspace(-1, 1, 12, dtype="float32").reshape(3, 4)
X = np.linspace(0.1, 0.7, 4, dtype="float32")
RAMP = np.arange(3, dtype="float32")

POLICIES = {
    "none": None,
    "everything": checkpoint_policies.everything_saveable,
    "nothing": checkpoint_policies.nothing_saveable,
    "dots": checkpoint_policies.checkpoint_dots,
    "dots without batch": checkpoint_policies.checkpoint_dots_with_no_batch_dims,
    "only": checkpoint_policies.save_only_these_names("z"),
    "any but": checkpoint_policies.save_any_names_but_these("q"),
    "except": checkpoint_policies.save_anything_except_these_names("z"),
    "both": checkpoint_policies.save_from_both_policies(
        checkpoint_policies.dots_saveable, checkpoint_policies.save_only_these_names("z")
    ),
}


def layer(w: Any, x: Any) -> Any:
    y = jnp.dot(w, x)
    z = checkpoint_name(jnp.sin(y), "z")
    return jnp.sum(jnp.cos(z) * jnp.arange(3.0))


def twice(x: Any) -> Any:
    return jnp.sin(jnp.sin(x))


def equations(jaxpr: Jaxpr) -> Iterator[Equation]:
    for eqn in jaxpr.eqns:
        yield eqn
        for inner in subjaxprs(eqn):
            yield from equations(inner)


def count(fun: Callable[..., Any], *args: Any, name: str) -> int:
    """How many equations of a primitive the program of `fun` has, inside calls too."""
    return sum(eqn.primitive.name == name for eqn in equations(xlamini.make_jaxpr(fun)(*args).jaxpr))


def again(fun: Callable[..., Any], *args: Any) -> Jaxpr:
    """The program that computes again, on the way back."""
    jaxpr = xlamini.make_jaxpr(fun)(*args).jaxpr
    (found,) = [eqn.params["jaxpr"] for eqn in jaxpr.eqns if eqn.params.get("differentiated")]
    return found


# --- the same numbers


@pytest.mark.sample(18)
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
@pytest.mark.parametrize("wrap", [lambda f: f, jit], ids=["eager", "jit"])
def test_derivatives_are_those_of_the_plain_function(policy: Any, wrap: Any) -> None:
    kept = checkpoint(layer, policy=policy)
    assert_close(wrap(kept)(W, X), layer(W, X), 1e-6)
    for of_kept, of_plain in zip(wrap(grad(kept, (0, 1)))(W, X), grad(layer, (0, 1))(W, X), strict=True):
        assert_close(of_kept, of_plain, 1e-5)
    second = [wrap(grad(lambda x, f=f: grad(f, 1)(W, x).sum()))(X) for f in (kept, layer)]
    assert_close(*second, 1e-5)


@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
def test_third_derivatives(policy: Any) -> None:
    def f(x: Any) -> Any:
        return checkpoint_name(jnp.exp(x), "z") * jnp.sin(x) + jnp.tanh(x) ** 3

    kept = checkpoint(f, policy=policy)
    assert_close(grad(grad(grad(kept)))(0.7), grad(grad(grad(f)))(0.7), 1e-4)
    assert_close(jit(grad(grad(kept)))(0.7), grad(grad(f))(0.7), 1e-5)


@pytest.mark.full
def test_forward_mode_and_both_mixed() -> None:
    kept = checkpoint(twice)
    for of_kept, of_plain in zip(xlamini.jvp(kept, (0.5,), (2.0,)), xlamini.jvp(twice, (0.5,), (2.0,)), strict=True):
        assert_close(of_kept, of_plain, 1e-6)
    hessians = [xlamini.hessian(lambda x, f=f: f(x).sum())(X) for f in (kept, twice)]
    assert_close(*hessians, 1e-6)
    forward = [grad(lambda x, f=f: xlamini.jvp(f, (x,), (1.0,))[1])(0.5) for f in (kept, twice)]
    assert_close(*forward, 1e-6)
    linear = xlamini.linearize(kept, 0.5)[1]
    assert_close(linear(2.0), 2 * grad(twice)(0.5), 1e-6)


@pytest.mark.sample(4)
@pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
@pytest.mark.parametrize("in_axes", [(0, None), (None, 0), (0, 0)])
def test_under_vmap_in_both_orders(policy: Any, in_axes: Any) -> None:
    ws, xs = np.stack([W, 2 * W, -W]), np.stack([X, 2 * X, -X])
    args = (W if in_axes[0] is None else ws, X if in_axes[1] is None else xs)
    kept = checkpoint(layer, policy=policy)
    expected = vmap(grad(layer), in_axes)(*args)
    assert_close(vmap(grad(kept), in_axes)(*args), expected, 1e-5)
    mapped = checkpoint(vmap(layer, in_axes), policy=policy)
    of_mapped = grad(lambda w, x: mapped(w, x).sum())(*args)
    of_plain = grad(lambda w, x: vmap(layer, in_axes)(w, x).sum())(*args)
    assert_close(of_mapped, of_plain, 1e-5)
    assert_close(jit(vmap(grad(kept), in_axes))(*args), expected, 1e-5)


def test_nested() -> None:
    def nested(n: int) -> Callable[..., Any]:
        return twice if n == 0 else checkpoint(lambda x: nested(n - 1)(jnp.cos(nested(n - 1)(x))))

    def plain(n: int, x: Any) -> Any:
        return twice(x) if n == 0 else plain(n - 1, jnp.cos(plain(n - 1, x)))

    assert_close(grad(nested(3))(0.3), grad(lambda x: plain(3, x))(0.3), 1e-6)
    assert_close(grad(grad(nested(2)))(0.3), grad(grad(lambda x: plain(2, x)))(0.3), 1e-5)
    (residual,) = saved_residuals(nested(3), 0.3)
    assert residual.origin == "from the argument x"


def test_pytrees_keywords_and_integers() -> None:
    @checkpoint
    def f(params: Any, n: Any, *, scale: Any) -> Any:
        return {"out": twice(params["w"] * scale) * n, "n": n}

    def loss(params: Any) -> Any:
        return f(params, 2, scale=3.0)["out"]

    assert_close(grad(loss)({"w": 0.2})["w"], grad(lambda w: 2 * twice(3 * w))(0.2), 1e-6)
    out = f({"w": 0.2}, 2, scale=3.0)
    assert out["n"].dtype == np.int32 and out["n"].weak_type


def test_closures_over_tracers_and_arrays() -> None:
    captured = jnp.asarray(X)

    def f(x: Any, wrap: Any) -> Any:
        return wrap(lambda y: jnp.sum(jnp.sin(y * x) * captured))(2.0 * x)

    assert_close(grad(f)(0.3, checkpoint), grad(f)(0.3, lambda g: g), 1e-6)
    assert_close(jit(grad(grad(lambda x: f(x, checkpoint))))(0.3), grad(grad(lambda x: f(x, lambda g: g)))(0.3), 1e-5)


def test_what_a_function_closes_over_may_change() -> None:
    scale = [2.0]
    f = checkpoint(lambda x: x * scale[0])
    assert_close(f(1.0), 2, 0)
    scale[0] = 5.0
    assert_close(f(1.0), 5, 0)
    assert_close(grad(f)(1.0), 5, 0)


def test_equal_calls_share_a_jaxpr() -> None:
    f = checkpoint(twice, policy=checkpoint_policies.save_only_these_names("a"))
    jaxpr = xlamini.make_jaxpr(lambda x: f(f(x)))(1.0).jaxpr
    first, second = (eqn.params["jaxpr"] for eqn in jaxpr.eqns)
    assert first is second


def test_static_arguments_are_passed_as_they_are() -> None:
    def f(x: Any, negative: bool, mode: str) -> Any:
        assert isinstance(negative, bool) and mode == "a"
        return -twice(x) if negative else twice(x)

    named = {"static_argnames": ("negative", "mode")}
    for options in ({"static_argnums": (1, 2)}, {"static_argnums": (-2, -1)}, named):
        assert_close(grad(checkpoint(**options)(f))(0.3, True, "a"), -grad(twice)(0.3), 1e-6)
    assert_close(grad(checkpoint(f, **named))(0.3, mode="a", negative=False), grad(twice)(0.3), 1e-6)
    listed = checkpoint(lambda x, factors: factors[0] * twice(x), static_argnums=1)  # without a hash, as in JAX
    assert_close(jit(lambda x: grad(listed)(x, [3.0]))(0.3), 3 * grad(twice)(0.3), 1e-6)


def test_a_decorator_keeps_name_and_docstring() -> None:
    @checkpoint(prevent_cse=False)
    def documented(x: Any) -> Any:
        """What it does."""
        return x

    assert documented.__name__ == "documented" and documented.__doc__ == "What it does."
    assert xlamini.remat is xlamini.checkpoint is ad_checkpoint.checkpoint


@pytest.mark.full
def test_random_keys() -> None:
    key = random.key(0)

    def noisy(key: Any, x: Any) -> Any:
        return (jnp.sin(x) * random.normal(key, x.shape) * jnp.sin(x)).sum()

    kept = checkpoint(noisy)
    assert_close(grad(kept, 1)(key, X), grad(noisy, 1)(key, X), 1e-6)
    keys = random.split(key, 3)
    batched = [jit(vmap(grad(f, 1), (0, None)))(keys, X) for f in (kept, noisy)]
    assert_close(*batched, 1e-6)
    assert random.key_data(jit(lambda k: checkpoint_name(k, "key"))(key)).tolist() == [0, 0]


def test_linear_transpose() -> None:
    (ct,) = xlamini.linear_transpose(checkpoint(lambda x: 3 * checkpoint_name(x, "a")), 1.0)(2.0)
    assert_close(ct, 6, 0)


@pytest.mark.full
@pytest.mark.parametrize("policy", ["none", "dots", "only"])
def test_with_branches_in_both_orders(policy: str) -> None:
    def branches(c: Any) -> Callable[..., Any]:
        return lambda p, w, x: lax.cond(p, c(layer), lambda w, x: jnp.sum(w @ x), w, x)

    def keep(f: Any) -> Any:
        return checkpoint(f, policy=POLICIES[policy])

    for kept in (branches(keep), keep(branches(lambda f: f)), keep(branches(keep))):
        for p in (True, False):
            assert_close(grad(kept, 2)(p, W, X), grad(branches(lambda f: f), 2)(p, W, X), 1e-5)
        ps = np.array([True, False])
        found, expected = (jit(vmap(grad(f, 2), (0, None, None)))(ps, W, X) for f in (kept, branches(lambda f: f)))
        assert_close(found, expected, 1e-5)


# --- what is kept

# policy -> values and bytes kept by `layer` besides its two arguments; the counts are those of JAX 0.10.2, which keeps
# an iota besides where it keeps everything.
KEPT = {
    "none": [],
    "everything": ["cos", "neg"],
    "nothing": [],
    "dots": ["dot_general"],
    "dots without batch": ["dot_general"],
    "only": ["'z'"],
    "any but": ["'z'"],
    "except": ["cos", "neg"],
    "both": ["dot_general", "'z'"],
}


@pytest.mark.parametrize("name", POLICIES)
def test_residuals_under_each_policy(name: str) -> None:
    found = saved_residuals(checkpoint(layer, policy=POLICIES[name]), W, X)
    computed = [r for r in found if r.computed]
    pattern = re.compile(r"(?:output of|named) (\S+) from .*test_checkpoint.py:\d+ \(layer\)")
    assert [m[1] for r in computed if (m := pattern.fullmatch(r.origin))] == KEPT[name]
    assert sum(r.nbytes for r in computed) == 12 * len(KEPT[name])
    assert [r.origin for r in found if not r.computed] == ["from the argument w", "from the argument x"]


@pytest.mark.parametrize("name", POLICIES)
def test_residuals_are_the_operands_of_the_second_half(name: str) -> None:
    jaxpr = again(grad(checkpoint(layer, policy=POLICIES[name]), (0, 1)), W, X)
    assert sum(a.nbytes for a in jaxpr.in_avals) == 12 * len(KEPT[name]) + 48 + 16 + 4


def test_nothing_needless_is_kept_or_computed() -> None:
    def f(x: Any, y: Any) -> Any:
        return jnp.sin(x) + jnp.exp(y) * 2, jnp.tanh(y)

    (residual,) = saved_residuals(lambda x: checkpoint(f)(x, 1.0)[0], 0.5)
    assert residual.origin == "from the argument x"
    jaxpr = again(grad(lambda x, y: checkpoint(f)(x, y)[0]), 0.5, 1.0)
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["cos", "mul"]


def test_a_saved_value_is_not_computed_again() -> None:
    policy = checkpoint_policies.save_only_these_names("a")

    def f(x: Any) -> Any:
        return jnp.sin(checkpoint_name(jnp.exp(x), "a"))

    jaxpr = again(grad(checkpoint(f, policy=policy)), 0.5)
    # The derivative of exp is its result before it got its name: that is the saved one too.
    assert [eqn.primitive.name for eqn in jaxpr.eqns] == ["cos", "mul", "mul"]
    assert [eqn.primitive.name for eqn in again(grad(checkpoint(f)), 0.5).eqns].count("exp") == 1


@pytest.mark.parametrize("inner", [jit, lambda f: jit(lambda *xs: jit(f)(*xs))], ids=["jit", "jit in jit"])
def test_policies_look_inside_calls(inner: Any) -> None:
    for name in ("dots", "only", "everything", "nothing"):
        found = saved_residuals(checkpoint(inner(layer), policy=POLICIES[name]), W, X)
        assert sum(r.nbytes for r in found if r.computed) == 12 * len(KEPT[name])
    assert_close(grad(checkpoint(inner(layer), policy=POLICIES["dots"]))(W, X), grad(layer)(W, X), 1e-5)


def test_dots_with_batch_dimensions() -> None:
    def f(x: Any) -> Any:
        return jnp.sin(jnp.einsum("bij,bjk->bik", x, x)).sum()

    x = np.ones((2, 3, 3), "float32")
    kept = [saved_residuals(checkpoint(f, policy=POLICIES[n]), x) for n in ("dots", "dots without batch")]
    assert [sum(r.computed for r in found) for found in kept] == [1, 0]


def test_policies_of_users_and_their_answers() -> None:
    asked = []

    def policy(primitive: Any, *avals: Any, **params: Any) -> Any:
        asked.append((primitive.name, [a.str_short() for a in avals]))
        return ad_checkpoint.Saveable if primitive.name == "dot_general" else ad_checkpoint.Recompute

    found = saved_residuals(checkpoint(layer, policy=policy), W, X)
    assert sum(r.computed for r in found) == 1
    assert ("dot_general", ["f32[3,4]", "f32[4]"]) in asked


def test_policies_with_parameters_compare_by_value() -> None:
    p = checkpoint_policies
    assert p.save_only_these_names("a", "b") == p.save_only_these_names("b", "a")
    assert hash(p.save_only_these_names("a")) == hash(p.save_only_these_names("a"))
    assert p.save_only_these_names("a") != p.save_any_names_but_these("a") != p.save_any_names_but_these("b")
    assert str(p.save_only_these_names("b", "a")) == "save_only_these_names('a', 'b')"


# --- computing again


def test_recomputation_is_in_the_backward_program() -> None:
    def f(x: Any) -> Any:
        return jnp.sin(jnp.sin(jnp.sin(x)))

    assert count(xlamini.value_and_grad(f), 1.0, name="sin") == 3
    assert count(xlamini.value_and_grad(checkpoint(f)), 1.0, name="sin") == 3 + 2
    saved = checkpoint(f, policy=POLICIES["everything"])
    assert count(xlamini.value_and_grad(saved), 1.0, name="sin") == 3


def tanhs(**options: Any) -> tuple[str, int]:
    """The StableHLO of a network's gradient, and how many tanh XLA leaves of it."""

    def block(w: Any, x: Any) -> Any:
        return jnp.tanh(jnp.tanh(x @ w) @ w)

    def loss(ws: Any, x: Any) -> Any:
        for w in ws:
            x = (checkpoint(block, **options) if options else block)(w, x)
        return x.sum()

    ws = [np.full((64, 64), 0.01, "float32")] * 6
    lowered = jit(xlamini.value_and_grad(loss)).lower(ws, np.ones((512, 64), "float32"))
    return lowered.as_text(), len(re.findall(r" tanh\(", lowered.compile().as_text()))


@pytest.mark.full
def test_recomputation_survives_the_compiler() -> None:
    (plain, kept), (guarded, repeated), (open_, merged) = tanhs(), tanhs(policy=None), tanhs(prevent_cse=False)
    assert "optimization_barrier" not in plain + open_
    assert guarded.count("optimization_barrier") == 6
    assert repeated > kept == merged


def test_recomputation_stays_guarded_in_second_derivatives() -> None:
    text = jit(xlamini.value_and_grad(grad(checkpoint(twice)))).lower(1.0).as_text()
    assert text.count("optimization_barrier") == 2


def test_prevent_cse_for_each_argument() -> None:
    def f(d: Any, y: Any) -> Any:
        return jnp.sin(d["a"] * d["b"] * jnp.sin(y))

    kept = checkpoint(f, prevent_cse=(False, True))
    args = {"a": 1.0, "b": 2.0}, 3.0
    (eqn,) = [e for e in xlamini.make_jaxpr(grad(kept))(*args).jaxpr.eqns if e.params]
    assert eqn.params["prevent_cse"] == (False, False, True, True)
    (barrier,) = re.findall(r".*optimization_barrier.*", jit(grad(kept)).lower(*args).as_text())
    assert barrier.count("tensor<f32>") == 2
    found, expected = (jit(vmap(grad(lambda y, f=f: grad(f, 1)(args[0], y))))(X) for f in (kept, f))
    assert_close(found, expected, 1e-5)
    assert_close(xlamini.jvp(grad(lambda y: kept(args[0], y)), (3.0,), (1.0,))[1], grad(grad(f, 1), 1)(*args), 1e-5)


def test_printed_as_jax_prints_it() -> None:
    assert str(xlamini.make_jaxpr(checkpoint(twice))(1.0)) == (
        "{ lambda ; a:f32[]. let\n    b:f32[] = remat2[\n      differentiated=False\n"
        "      jaxpr={ lambda ; c:f32[]. let d:f32[] = sin c; e:f32[] = sin d in (e,) }\n"
        "      policy=None\n      prevent_cse=True\n    ] a\n  in (b,) }"
    )
    named = xlamini.make_jaxpr(lambda x: checkpoint_name({"a": x}, "foo"))(1.0)
    assert str(named) == "{ lambda ; a:f32[]. let b:f32[] = name[name=foo] a in (b,) }"


# --- looking at it


def test_print_saved_residuals(capsys: pytest.CaptureFixture[str]) -> None:
    factor = jnp.asarray(X)

    def f(w: Any, x: Any) -> Any:
        return checkpoint(layer, policy=POLICIES["only"])(w, x) + jnp.sum(jnp.sin(x) * factor)

    ad_checkpoint.print_saved_residuals(jit(f), W, X)
    text = re.sub(r"\S*(test_checkpoint.py):\d+", r"\1:N", capsys.readouterr().out)
    assert text.splitlines() == [
        "f32[3] named 'z' from test_checkpoint.py:N (layer), 12 bytes, for computing layer again at "
        "test_checkpoint.py:N, policy save_only_these_names('z')",
        "f32[3,4] from the argument w, 48 bytes, for computing layer again at test_checkpoint.py:N, "
        "policy save_only_these_names('z')",
        "f32[4] from the argument x, 16 bytes, for computing layer again at test_checkpoint.py:N, "
        "policy save_only_these_names('z')",
        "f32[4] output of cos from test_checkpoint.py:N "
        "(test_print_saved_residuals.<locals>.f), 16 bytes, for sin at test_checkpoint.py:N",
        "f32[4] from a constant, 16 bytes, for mul at test_checkpoint.py:N",
        "5 values, 108 bytes; 28 bytes besides arguments and constants",
    ]


def test_saved_residuals_of_types_alone() -> None:
    (residual,) = saved_residuals(jnp.sin, xlamini.ShapeDtypeStruct((1000, 1000), "float32"))
    assert residual.nbytes == 4_000_000 and "4,000,000 bytes" in str(residual)


def test_what_a_checkpoint_stores_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    function = checkpoint(layer, policy=POLICIES["only"])
    with log_checkpoint_residuals(True):
        grads = xlamini.grad(lambda w: jnp.sum(function(w, X)))(W)
    assert caplog.messages == ["checkpoint of layer stores computed values [f32[3]] and inputs [f32[3,4], f32[4]]"]
    assert_close(grads, xlamini.grad(lambda w: jnp.sum(layer(w, X)))(W), 1e-6)
    xlamini.grad(lambda w: jnp.sum(function(w, 2 * X)))(W)
    assert len(caplog.messages) == 1


# --- effects


class Noted(Primitive):
    """An operation with an effect, for these tests."""

    name = "noted"

    def shape_rule(self, x: ShapedArray, *, effect: Effect) -> ShapedArray:
        return x

    def jvp(self, primals: Any, tangents: Any, *, effect: Effect) -> Any:
        return self.bind(*primals, effect=effect), tangents[0]

    def lower(self, ctx: Any, x: Any, *, effect: Effect) -> Any:
        return x

    def effects(self, avals: Any, params: dict[str, Any]) -> Any:
        return frozenset([params["effect"]])


noted_p = Noted()


def test_observing_effects_happen_again() -> None:
    f = checkpoint(lambda x: jnp.sin(jnp.sin(noted_p.bind(x, effect=debug_effect))))
    assert_close(jit(grad(f))(0.5), grad(twice)(0.5), 1e-6)
    assert count(grad(f), 0.5, name="noted") == 2


def test_other_effects_are_refused_when_differentiated() -> None:
    f = checkpoint(lambda x: twice(noted_p.bind(x, effect=Effect("IO"))))
    assert_close(jit(f)(0.5), twice(0.5), 0)
    with pytest.raises(NotImplementedError, match=r"checkpoint: <lambda> has effects \(IO\)"):
        grad(f)(0.5)
