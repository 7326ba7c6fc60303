"""Digests of programs: the same for programs that run alike, different for all others."""
from __future__ import annotations

import enum
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
import pytest

import xlamini
from xlamini import lax, make_jaxpr, numpy as jnp
from xlamini.core.caching.digest import NoDigest, digest, write
from xlamini.core.program.primitive import Primitive
from xlamini.core.tracing.tracer import build

X = np.arange(3, dtype=np.float32)


class Pair(NamedTuple):
    a: Any
    b: Any


class Color(enum.IntEnum):
    RED = 1


DIFFERENT = [
    *(1, True, 1.0, 1j, "1", b"1", None, 0.0, -0.0, 0j, complex(0.0, -0.0), float("inf"), "None"),
    *((1, 2), (1, True), (1, 2.0), (1, (2,)), ((1, 2),), (), ((),), ("a", "b"), ("a, b",), ("a' 'b",)),
    *(np.float32(1), np.float64(1), np.int32(1), np.int64(1), np.float32(0), np.float32(-0.0), ml_dtypes.bfloat16(1)),
    *(np.dtype("float32"), np.dtype("bfloat16"), np.dtype("float16"), np.dtype(bool), "float32", np.float32),
    *(Pair(1, 2), Pair(1, True), Pair((1, 2), 3), Color.RED, frozenset({1, 2}), frozenset({1, 3}), {"a": 1}, {"a": 2}),
    *(lax.Precision.HIGHEST, lax.Precision.DEFAULT, lax.GatherScatterMode.CLIP, jnp.sum, jnp.mean),
]


def test_params_that_differ_are_written_differently() -> None:
    assert len({write(value) for value in DIFFERENT}) == len(DIFFERENT)
    assert write(frozenset({"a", "b", "c"})) == write(frozenset({"c", "b", "a"}))


@pytest.mark.parametrize("value", [object(), lambda x: x, print.__call__, X, (1, object()), {"a": lambda: 0}, Pair])
def test_params_that_no_other_process_knows(value: Any) -> None:
    with pytest.raises(NoDigest):
        write(value)


def digest_of(fun: Any, *args: Any) -> str:
    return digest(make_jaxpr(fun)(*args).jaxpr)


def test_variables_and_lines_do_not_count() -> None:
    def first(x: Any) -> Any:
        return jnp.sin(x) * x

    def second(value: Any) -> Any:
        other = jnp.sin(value)
        return other * value

    assert digest_of(first, X) == digest_of(second, X)
    assert digest_of(xlamini.grad(lambda x: first(x).sum()), X) == digest_of(xlamini.grad(lambda y: second(y).sum()), X)


PROGRAMS = {
    "operands": (lambda x: x - 2 * x, lambda x: 2 * x - x),
    "outputs": (lambda x: (x, -x), lambda x: (-x, x)),
    "types": (lambda x: x + 1, lambda x: (x + 1).astype(jnp.float16)),
    "zeros": (lambda x: x * 0.0, lambda x: x * -0.0),
    "nan": (lambda x: x * np.nan, lambda x: x * np.inf),
    "weak types": (lambda x: x * jnp.float32(2), lambda x: x * 2.0),
    "inner": (
        lambda x: lax.cond(x[0] > 0, jnp.sin, jnp.cos, x),
        lambda x: lax.cond(x[0] > 0, jnp.cos, jnp.sin, x),
    ),
    "the length of a loop": (
        lambda x: lax.fori_loop(0, 3, lambda i, c: c * 2, x),
        lambda x: lax.fori_loop(0, 4, lambda i, c: c * 2, x),
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_that_differ(name: str) -> None:
    one, other = PROGRAMS[name]
    assert digest_of(one, X) != digest_of(other, X)
    assert digest_of(one, X) == digest_of(one, X)


def test_derivative_rules_do_not_count() -> None:
    def with_rule(factor: float) -> Any:
        @xlamini.custom_jvp
        def double(x: Any) -> Any:
            return x * 2

        double.defjvp(lambda primals, tangents: (double(*primals), factor * tangents[0]))
        return double

    assert digest_of(with_rule(2.0), X) == digest_of(with_rule(3.0), X)
    assert digest_of(xlamini.grad(lambda x: with_rule(2.0)(x).sum()), X) != digest_of(
        xlamini.grad(lambda x: with_rule(3.0)(x).sum()), X
    )


def test_a_primitive_of_the_user() -> None:
    """Its lowering is not in the library, whose source is part of what a program is known by."""

    class Mine(Primitive):
        def shape_rule(self, aval: Any) -> Any:
            return aval

    mine = Mine("negate")
    jaxpr, _ = build(lambda x: [mine.bind(x)], [xlamini.typeof(jnp.ones(3))], "f")
    with pytest.raises(NoDigest):
        digest(jaxpr)
