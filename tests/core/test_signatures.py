"""What equations of one kind share: rules and library functions run once, and are copied where that gives the same."""
from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.support.checks import assert_close
from xlamini import grad, jit, lax, numpy as jnp, vmap
from xlamini.core.program.literals import literal
from xlamini.core.program.primitive import Primitive

RAMP = np.arange(1, 4, dtype=np.float32)


class Counted(Primitive):
    """`scale * x`; counts how often each rule runs."""

    name = "test_counted_scale"

    def __init__(self) -> None:
        super().__init__()
        self.runs: dict[str, int] = {}

    def ran(self, rule: str) -> None:
        self.runs[rule] = self.runs.get(rule, 0) + 1

    def shape_rule(self, x: Any, *, scale: float) -> Any:
        self.ran("shape_rule")
        return x

    def jvp(self, primals: Any, tangents: Any, *, scale: float) -> Any:
        self.ran("jvp")
        return self.bind(*primals, scale=scale), self.bind(*tangents, scale=scale)

    def transpose(self, ct: Any, x: Any, *, scale: float) -> Any:
        self.ran("transpose")
        return [self.bind(ct, scale=scale)]

    def batch(self, axis: Any, operands: Any, dims: Any, *, scale: float) -> Any:
        self.ran("batch")
        return self.bind(*operands, scale=scale), dims[0]

    def lower(self, ctx: Any, x: Any, *, scale: float) -> Any:
        self.ran("lower")
        return ctx.op("stablehlo.multiply", x, ctx.constant(scale, ctx.aval_out))


def thrice(scaled: Primitive, scale: float = 2.0) -> Any:
    """A fresh function that applies it three times."""
    return lambda x: scaled.bind(scaled.bind(scaled.bind(x, scale=scale), scale=scale), scale=scale)


def test_rules_run_once_in_all_programs() -> None:
    scaled = Counted()
    with xlamini.enable_checks(False):  # the checker asks shape rules too
        for _ in range(2):
            assert float(jit(grad(thrice(scaled)))(1.0)) == 8.0
            np.testing.assert_array_equal(jit(vmap(thrice(scaled)))(RAMP), 8 * RAMP)
    # Two types of operands: ~float32[] and float32[3], the latter of float32[] batched.
    assert scaled.runs == {"shape_rule": 3, "jvp": 1, "transpose": 1, "batch": 1, "lower": 2}


def test_rules_that_are_not_pure_run_every_time() -> None:
    class Impure(Counted):
        traits = 0

    scaled = Impure()
    assert float(jit(grad(thrice(scaled)))(1.0)) == 8.0
    assert (scaled.runs["jvp"], scaled.runs["transpose"], scaled.runs["lower"]) == (3, 3, 3)


def test_zeros_of_both_signs_are_two_params_and_two_literals() -> None:
    scaled = Counted()
    for scale in (0.0, -0.0):
        assert np.signbit(jit(thrice(scaled, scale))(1.0)) == np.signbit(scale)
        assert np.signbit(jit(lambda x, scale=scale: x * scale)(1.0)) == np.signbit(scale)
        assert np.signbit(jit(lambda x, scale=scale: jnp.copysign(x, scale))(1.0)) == np.signbit(scale)
    assert literal(0.0) is literal(0.0) is not literal(-0.0)
    assert literal(1) is not literal(True)
    assert literal(1, np.dtype(np.int8)) is not literal(1)


def test_equations_that_differ_in_a_literal_have_their_own_rules() -> None:
    powers = [jit(grad(lambda x, n=n: lax.pow(x, n)))(2.0) for n in (2.0, 3.0, 0.0)]
    assert_close(powers, [4.0, 12.0, 0.0], 1e-6)


@pytest.mark.full
def test_one_operand_twice_is_not_two_operands() -> None:
    square, product = jit(lambda x, y: lax.mul(x, x)), jit(lambda x, y: lax.mul(x, y))
    for _ in range(2):
        assert (float(square(2.0, 3.0)), float(product(2.0, 3.0))) == (4.0, 6.0)
    xlamini.clear_caches()
    both = jit(lambda x, y: (lax.atan2(x, x), lax.atan2(x, y), lax.atan2(y, y), lax.atan2(y, x)))
    assert_close(both(1.0, 2.0), [np.arctan2(a, b) for a, b in ((1, 1), (1, 2), (2, 2), (2, 1))], 1e-6)
    same = jit(lambda x, y: (jnp.stack([x, x]), jnp.stack([x, y])))
    np.testing.assert_array_equal(same(1.0, 2.0), [[1, 1], [1, 2]])


def test_the_text_of_a_program_does_not_depend_on_what_came_before() -> None:
    def program(x: Any) -> Any:
        return jnp.sum(jnp.mean(x, axis=0) * 2.0 + jnp.max(x) ** 2), x[1:2] + 2.0

    texts = {jit(lambda x: program(x)).lower(np.ones((3, 4), np.float32)).as_text(debug_info=True) for _ in range(3)}
    assert len(texts) == 1


def test_the_place_is_that_of_each_call() -> None:
    jaxpr = xlamini.make_jaxpr(lambda x: (
        jnp.mean(x),
        jnp.mean(x),
    ))(RAMP)  # fmt: skip
    lines = [eqn.provenance.source.line for eqn in jaxpr.eqns]
    assert len(set(lines)) == 2
    assert lines == sorted(lines)
    with xlamini.named_scope("outer"):
        inside = xlamini.make_jaxpr(jnp.mean)(RAMP)
    assert {eqn.provenance.scope for eqn in inside.eqns} == {("outer",)}


def test_a_warning_is_given_by_every_call() -> None:
    def narrowed(x: Any) -> Any:
        return jnp.astype(x, np.float64)

    for _ in range(3):
        with pytest.warns(UserWarning, match="float64"):
            jit(lambda x: narrowed(x))(RAMP)
    with warnings.catch_warnings(), xlamini.enable_x64(True):
        warnings.simplefilter("error")
        assert jit(lambda x: narrowed(x))(RAMP).dtype == np.float64


def test_flags_are_asked_by_every_call() -> None:
    add = lambda x: x + jnp.ones((2, 3))
    assert jit(lambda x: add(x))(RAMP).shape == (2, 3)
    with xlamini.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="rank"):
        jit(lambda x: add(x))(RAMP)


def test_what_looks_at_values_is_traced_in_place() -> None:
    x = jnp.arange(3.0)
    for _ in range(2):
        assert jit(lambda x, i: x[i])(x, 7) == 2.0
        for known in (lambda y: x[jnp.int32(7)] * y, lambda y: jnp.sum(x.at[jnp.int32(7)].set(y))):
            with pytest.raises(IndexError, match="7"):
                grad(known)(7.0)
        np.testing.assert_array_equal(grad(lambda y: jnp.sum(y[y > 1.5]))(RAMP), [0.0, 1.0, 1.0])
        with pytest.raises(xlamini.errors.NonConcreteBooleanIndexError):
            jit(lambda y: y[y > 1.5])(RAMP)


def test_errors_name_the_call_every_time() -> None:
    for _ in range(2):
        with pytest.raises(ValueError, match="reshape"):
            jit(lambda x: jnp.reshape(x, (2, 2)))(RAMP)
        with pytest.raises(xlamini.errors.TracerBoolConversionError, match="argument 'x'"):
            jit(lambda x: x if x > 0 else -x)(1.0)
