"""The rewrites by hand: what they keep, remember and refuse, and where what they make comes from."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.support.checks import assert_close, primitives_of
from xlamini import lax
from xlamini.core.caching.structure import structural_key
from xlamini.core.errors import JaxprError
from xlamini.core.program.jaxpr import Equation, Jaxpr, Literal, Var, close_over
from xlamini.core.program.jaxpr_check import check_jaxpr
from xlamini.core.program.primitive import Axis, Primitive
from xlamini.interpreters.batch import batch
from xlamini.interpreters.dce import dce
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.jvp import jvp
from xlamini.interpreters.linearize import linearize
from xlamini.interpreters.partial_eval import partial_eval
from xlamini.interpreters.transpose import transpose

F32 = np.float32
RAMP = np.arange(3, dtype=F32)


def traced(fun: Any, *args: Any) -> Jaxpr:
    """The jaxpr of a function, captured values first among its inputs."""
    return close_over(xlamini.make_jaxpr(fun)(*args).jaxpr)


def names(jaxpr: Jaxpr) -> list[str]:
    return [e.primitive.name for e in jaxpr.eqns]


def run(jaxpr: Jaxpr, *args: Any) -> list[float]:
    return [float(x) for x in xlamini.jit(lambda *xs: evaluate(jaxpr, xs))(*map(float, args))]


# --- remembering


def test_a_rewrite_is_remembered_on_the_jaxpr() -> None:
    jaxpr = traced(lambda x: lax.sin(x) * x, 1.0)
    assert jvp(jaxpr, (True,)) is jvp(jaxpr, (True,))
    assert linearize(jaxpr, (True,)) is linearize(jaxpr, (True,))
    assert batch(jaxpr, Axis(3), (0,)) is not batch(jaxpr, Axis(4), (0,))


class CountedSin(Primitive):
    """A sine that counts how often its derivative is taken."""

    name = "test_counted_sin"
    taken = 0

    def shape_rule(self, x: Any) -> Any:
        return x

    def jvp(self, primals: Any, tangents: Any) -> Any:
        self.taken += 1
        return self.bind(*primals), tangents[0] * lax.cos(primals[0])

    def lower(self, ctx: Any, x: Any) -> Any:
        return ctx.op("stablehlo.sine", x)


def test_a_function_called_48_times_is_differentiated_and_lowered_once() -> None:
    sin = CountedSin()
    block = xlamini.jit(lambda x: sin.bind(x) * 2)

    def deep(x: Any) -> Any:
        for _ in range(48):
            x = block(x)
        return x

    step = xlamini.jit(xlamini.value_and_grad(deep))
    text = step.lower(F32(1)).as_text()
    assert sin.taken == 1
    assert text.count("stablehlo.sine") == 1
    assert text.count("call @") == 2 * 48
    assert sin.taken == 1


# --- dead code


def test_dead_code_goes_and_inputs_with_it() -> None:
    jaxpr = traced(lambda x, y, z: (lax.sin(x), lax.cos(y), z), 1.0, 2.0, 3.0)
    slim, used = dce(jaxpr, (True, False, True))
    assert names(slim) == ["sin"] and used == (True, False, True)
    same, used = dce(jaxpr, (True, False, True), True)
    assert len(same.invars) == 3 and used == (True,) * 3


def test_a_program_without_dead_code_stays_as_it_is() -> None:
    jaxpr = traced(lambda x: xlamini.jit(lax.sin)(x) * x, 1.0)
    assert dce(jaxpr, (True,))[0] is jaxpr


def test_dead_code_within_a_call_goes() -> None:
    pair = xlamini.jit(lambda x, y: (lax.sin(x), lax.cos(y)))
    slim, used = dce(traced(lambda x, y: pair(x, y)[0], 1.0, 2.0), (True,))
    assert used == (True, False)
    assert {p.name for p in primitives_of(slim)} == {"jit", "sin"}
    dead = xlamini.jit(lambda x, y: (lax.cos(y), lax.sin(x))[1:])
    slim, used = dce(traced(lambda x, y: dead(x, y), 1.0, 2.0), (True,))
    assert used == (True, False)


# --- partial evaluation


def test_partial_evaluation_parts_by_what_is_known() -> None:
    jaxpr = traced(lambda x, y: (lax.sin(x) * y, lax.cos(x), y, x, 2.0), 1.0, 2.0)
    known, unknown, unknown_out, _ = partial_eval(jaxpr, (False, True))
    assert unknown_out == (True, False, True, False, False)
    assert sorted(names(known)) == ["cos", "sin"] and names(unknown) == ["mul"]
    now = run(known, F32(1))
    residuals = now[3:]
    assert_close(run(unknown, *map(F32, residuals), F32(2)), [np.sin(1) * 2, 2], 1e-6)


def test_partial_evaluation_goes_into_calls() -> None:
    call = xlamini.jit(lambda x, y: (lax.exp(lax.sin(x)) * y, lax.cos(x)))
    known, unknown, _, _ = partial_eval(traced(lambda x, y: call(x, y), 1.0, 2.0), (False, True))
    assert {p.name for p in primitives_of(known)} == {"jit", "sin", "cos", "exp"}
    assert {p.name for p in primitives_of(unknown)} == {"jit", "mul"}


# --- linear programs


def test_what_is_linear_comes_apart_from_what_is_not() -> None:
    lin = linearize(traced(lambda x, n: (lax.exp(x) * n, n, x), 1.0, 2.0), (True, False))
    assert names(lin.primal) == ["exp", "mul"]
    assert set(names(lin.tangent)) == {"mul"}
    assert lin.nonzero_out == (True, False, True)


def test_residuals_that_are_there_already_are_not_returned_again() -> None:
    lin = linearize(traced(lambda x, y: lax.exp(x * y), 1.0, 2.0), (True, True))
    assert len(lin.primal.outvars) == 1
    outs, residuals = lin.split_outputs(["x", "y"], ["out"])
    assert outs == ["out"] and sorted(residuals) == ["out", "x", "y"]


def test_constants_are_no_residuals() -> None:
    fun = lambda x: lax.select_n(x > 0, lax.broadcast(0.0, (3,)), x) * lax.iota(F32, 3)
    lin = linearize(traced(fun, RAMP), (True,))
    assert [v.aval.dtype for v in lin.tangent.invars] == [bool, F32]
    assert len(lin.primal.outvars) == 2
    assert names(lin.tangent).count("iota") == 1


def test_cotangents_that_meet_are_summed() -> None:
    jaxpr = traced(lambda x, y: (x + x, x - y, y, y, x), 1.0, 1.0)
    back, nonzero = transpose(jaxpr, (True, True), (True,) * 5)
    assert nonzero == (True, True)
    assert run(back, *map(F32, (1, 10, 100, 1000, 10000))) == [10012, 1090]


def test_cotangents_that_are_zero_cost_nothing() -> None:
    jaxpr = traced(lambda x, y: (3 * x, 2 * y), 1.0, 1.0)
    back, nonzero = transpose(jaxpr, (True, True), (False, True))
    assert nonzero == (False, True)
    assert len(back.eqns) == 1 and len(back.invars) == 1


def test_what_is_known_runs_forward_in_a_transpose() -> None:
    jaxpr = traced(lambda k, x: lax.sin(k) * x, 1.0, 1.0)
    back, _ = transpose(jaxpr, (False, True), (True,))
    assert names(back) == ["sin", "mul"]
    assert_close(run(back, F32(1), F32(2)), [2 * np.sin(1)], 1e-6)


def test_batching_leaves_alone_what_no_batch_reaches() -> None:
    jaxpr = traced(lambda x, y: (lax.sin(x), lax.cos(y)), 1.0, 1.0)
    batched, dims = batch(jaxpr, Axis(5), (0, None))
    assert dims == (0, None)
    assert [v.aval.shape for v in batched.outvars] == [(5,), ()]
    assert batch(jaxpr, Axis(5), (0, None), (True, True))[1] == (0, 0)


class Constant(Primitive):
    """An operation whose derivative rule brings in an array."""

    name = "test_constant"

    def shape_rule(self, x: Any) -> Any:
        return x

    def jvp(self, primals: Any, tangents: Any) -> Any:
        return self.bind(*primals), tangents[0] * np.ones(3, F32)

    def lower(self, ctx: Any, x: Any) -> Any:
        return x


def test_a_rule_may_capture_an_array() -> None:
    jaxpr = traced(Constant().bind, RAMP)
    pushed, _ = jvp(jaxpr, (True,))
    assert [c.tolist() for c in pushed.consts] == [[1, 1, 1]]
    assert_close(evaluate(pushed, [RAMP, 2 * RAMP]), [RAMP, 2 * RAMP], 1e-6)


def test_a_missing_rule_says_what_to_write() -> None:
    class Bare(Primitive):
        name = "test_bare"

        def shape_rule(self, x: Any) -> Any:
            return x

    bare = Bare()
    for transformation, rule in ((xlamini.grad, "jvp"), (xlamini.vmap, "batch"), (xlamini.jit, "lower")):
        with pytest.raises(NotImplementedError, match=rf"'test_bare' has no {rule} rule; write `def {rule}"):
            transformation(bare.bind)(RAMP if rule == "batch" else 1.0)


# --- the checker


def broken(jaxpr: Jaxpr, **changes: Any) -> Jaxpr:
    """The jaxpr with its last equation changed."""
    *before, last = jaxpr.eqns
    fields = {f: getattr(last, f) for f in ("primitive", "invars", "outvars", "params", "effects", "provenance", "id")}
    return jaxpr.replace(eqns=[*before, Equation(**{**fields, **changes})])


def sample() -> Jaxpr:
    return traced(lambda x: lax.sin(x) * x, RAMP)


def breakages() -> Sequence[tuple[Jaxpr, str]]:
    jaxpr = sample()
    first, last = jaxpr.eqns
    (x,), stranger = jaxpr.invars, Var(jaxpr.in_avals[0])
    scalar, wide = Literal(1.0, traced(lambda x: x, 1.0).in_avals[0]), Var(jaxpr.in_avals[0].update(shape=(4,)))
    return [
        (broken(jaxpr, invars=[stranger, x]), "used before it is assigned"),
        (jaxpr.replace(outvars=[stranger]), "used before it is assigned"),
        (jaxpr.replace(eqns=[last, first]), "used before it is assigned"),
        (broken(jaxpr, outvars=[first.outvars[0]]), "assigned twice"),
        (broken(jaxpr, outvars=[wide]), "its shape rule says"),
        (broken(jaxpr, invars=[Literal(RAMP, x.aval), x]), "is not a scalar"),
        (broken(jaxpr, effects=frozenset({"print"})).replace(name="e"), "effects"),
        (jaxpr.replace(invars=[x, x]), "assigned twice"),
        (broken(jaxpr, primitive=lax.sin, invars=[scalar]), "its shape rule says"),
    ]


@pytest.mark.parametrize("number", range(9))
def test_a_broken_jaxpr_is_refused(number: int) -> None:
    jaxpr, text = breakages()[number]
    if text == "effects":
        jaxpr.effects = frozenset()
    with pytest.raises(JaxprError, match=text):
        check_jaxpr(jaxpr)


def test_a_call_with_operands_of_other_types_is_refused() -> None:
    jaxpr = traced(lambda x: xlamini.jit(lax.sin)(x), RAMP)
    other = traced(lambda x: xlamini.jit(lax.sin)(x), 1.0)
    with pytest.raises(JaxprError, match="its jaxpr takes"):
        check_jaxpr(broken(jaxpr, params=other.eqns[0].params, outvars=[Var(other.out_avals[0])]))


def test_the_error_of_the_checker_shows_equation_line_and_program() -> None:
    jaxpr = broken(sample(), invars=[Var(sample().in_avals[0])] * 2)
    message = r"(?s)equation e1 mul \(.*test_interpreters\.py:\d+ .*\) is not well formed.*lambda"
    with pytest.raises(JaxprError, match=message):
        check_jaxpr(jaxpr)


# --- structure


def test_the_structural_key_is_that_of_the_program() -> None:
    def key(fun: Any, *args: Any) -> Any:
        return structural_key(traced(fun, *args))

    same = [key(lambda x, y: lax.sin(x) * y, 1.0, 2.0), key(lambda a, b: (lax.sin(a)) * b, 7.0, 8.0)]
    assert same[0] == same[1] and hash(same[0]) == hash(same[1])
    others = [
        key(lambda x, y: lax.sin(y) * x, 1.0, 2.0),
        key(lambda x, y: y * lax.sin(x), 1.0, 2.0),
        key(lambda x, y: lax.cos(x) * y, 1.0, 2.0),
        key(lambda x, y: lax.sin(x) * y, F32(1), 2.0),
        key(lambda x, y: lax.sin(x) * y, RAMP, RAMP),
        key(lambda x, y: (lax.sin(x) * y, x), 1.0, 2.0),
    ]
    assert len({*others, same[0]}) == len(others) + 1


@pytest.mark.parametrize("first, second", [(0.0, -0.0), (1.0, 2.0), (float("nan"), 0.0)])
def test_literals_are_compared_by_their_bits(first: float, second: float) -> None:
    keys = [structural_key(traced(lambda x, c=c: x * c, F32(1))) for c in (first, second, first)]
    assert keys[0] != keys[1] and keys[0] == keys[2]


def test_params_are_compared_by_name() -> None:
    keys = [
        structural_key(traced(lambda x, a=a, b=b: lax.reduce_precision(x, **{a: 8, b: 7}), F32(1)))
        for a, b in (("exponent_bits", "mantissa_bits"), ("mantissa_bits", "exponent_bits"))
    ]
    assert keys[0] != keys[1]
    assert float(lax.reduce_precision(F32(1.01), exponent_bits=8, mantissa_bits=3)) == 1.0
    assert float(lax.reduce_precision(F32(1.01), mantissa_bits=8, exponent_bits=3)) != 1.0


def test_programs_within_programs_are_compared_too() -> None:
    def key(fun: Any) -> Any:
        return structural_key(traced(lambda x: xlamini.jit(fun)(x), 1.0))

    assert key(lambda x: lax.sin(x)) == key(lambda x: lax.sin(x))
    assert key(lambda x: lax.sin(x)) != key(lambda x: lax.cos(x))
    assert key(lambda x: lax.sin(x)) != key(lambda x: lax.sin(lax.sin(x)))


# --- provenance


def user_function(x: Any) -> Any:
    doubled = lax.sin(x)
    product = doubled * x
    return product


LINE = user_function.__code__.co_firstlineno


def test_equations_know_the_users_line_and_name() -> None:
    sources = [e.provenance.source for e in traced(user_function, 1.0).eqns]
    assert [s.line - LINE for s in sources] == [1, 2]
    assert [s.target for s in sources] == ["doubled", "product"]
    assert [s.function for s in sources] == ["user_function"] * 2
    assert all(s.file == __file__ and "lax.sin" in sources[0].text for s in sources)


def lines_and_paths(jaxpr: Jaxpr) -> set[tuple[int, tuple[str, ...]]]:
    return {(e.provenance.source.line - LINE, tuple(e.provenance.path)) for e in jaxpr.eqns}


def test_rewrites_keep_the_line_and_add_to_the_path() -> None:
    jaxpr = traced(user_function, 1.0)
    pushed, _ = jvp(jaxpr, (True,))
    assert lines_and_paths(pushed) == {(1, ("jvp of e0 sin",)), (2, ("jvp of e1 mul",))}
    batched, _ = batch(jaxpr, Axis(2), (0,))
    assert lines_and_paths(batched) == {(1, ("batch of e0 sin",)), (2, ("batch of e1 mul",))}


def test_the_way_back_knows_the_way_there() -> None:
    lin = linearize(traced(user_function, 1.0), (True,))
    back, _ = transpose(lin.tangent, (False,) * lin.num_residuals + (True,), (True,))
    for eqn in back.eqns:
        first, second = eqn.provenance.path
        assert first.startswith("linearize of e") and second.startswith("transpose of e")
    assert {e.provenance.source.line - LINE for e in back.eqns} == {1, 2}


def test_scopes_are_kept() -> None:
    def scoped(x: Any) -> Any:
        with xlamini.named_scope("layer"), xlamini.named_scope("act"):
            return lax.sin(x)

    pushed, _ = jvp(traced(scoped, 1.0), (True,))
    assert {e.provenance.scope for e in pushed.eqns} == {("layer", "act")}
    assert "layer/act/sin" in xlamini.jit(scoped).lower(1.0).as_text(debug_info=True)


def test_equations_are_numbered_in_order() -> None:
    jaxpr, _ = jvp(traced(user_function, 1.0), (True,))
    assert [e.id for e in jaxpr.eqns] == list(range(len(jaxpr.eqns)))
