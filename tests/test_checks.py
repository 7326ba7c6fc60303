"""The checks of rows can fail: each catches the operation that is wrong in its way, and passes the right one."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.rows.row import Arg, Row, singles
from tests.support import checks
from xlamini import lax
from xlamini.core.program.primitive import Primitive
from xlamini.primitives.elementwise.convert_element_type import convert

F32 = np.float32


class Square(Primitive):
    """x * x, right in everything."""

    name = "test_square"
    result: Any = staticmethod(lambda x: x)
    partial: Any = staticmethod(lambda x: 2 * x)
    tangent: Any = staticmethod(lambda t: t)

    def shape_rule(self, x: Any) -> Any:
        return x

    def jvp(self, primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        return self.bind(x), self.tangent(triple(t) * self.partial(x) / 3)

    def batch(self, axis: Any, operands: Any, dims: Any) -> Any:
        return self.bind(*operands), dims[0]

    def lower(self, ctx: Any, x: Any) -> Any:
        return ctx.op("stablehlo.multiply", x, x)


class Triple(Primitive):
    """3 * x, right in everything, and linear."""

    name = "test_triple"

    def shape_rule(self, x: Any) -> Any:
        return x

    def jvp(self, primals: Any, tangents: Any) -> Any:
        return self.bind(*primals), self.bind(*tangents)

    def transpose(self, ct: Any, x: Any) -> Any:
        return [self.bind(ct)]

    def batch(self, axis: Any, operands: Any, dims: Any) -> Any:
        return self.bind(*operands), dims[0]

    def lower(self, ctx: Any, x: Any) -> Any:
        return ctx.op("stablehlo.add", x, ctx.op("stablehlo.add", x, x))


triple = Triple().bind


def row(primitive: Primitive, reference: Callable[..., Any]) -> Row:
    return Row(primitive.name, primitive.bind, reference, samples=singles(domain=(1, 2)))


def square(**rules: Any) -> Row:
    """A row of a Square with some rules replaced."""
    return row(type("Square", (Square,), rules)(), np.square)


def linear(**rules: Any) -> Row:
    return row(type("Triple", (Triple,), rules)(), lambda x: 3 * x)


def every_check(row: Row) -> None:
    sample = row.samples[0]
    for dtype in {"bfloat16", "float32", "float64"} & set(row.dtypes):
        checks.check_values(row, sample, dtype)
    checks.check_batching(row, sample, "float32", list(checks.in_axes_of([np.ones((2, 3))])))
    checks.check_derivatives(row, sample, "float64")
    checks.check_compositions(row, sample, "float64")


def cubed(self: Any, ctx: Any, x: Any) -> Any:
    return ctx.op("stablehlo.multiply", x, ctx.op("stablehlo.multiply", x, x))


def narrow(self: Any, primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return self.bind(x), convert(2 * x * t, np.float32)


def other_linearization(self: Any, primals: Any, tangents: Any) -> Any:
    (x,), (t,) = primals, tangents
    return self.bind(x), 2.001 * x * t


def narrow_transpose(self: Any, ct: Any, x: Any) -> Any:
    return [convert(self.bind(ct), np.float32)]


def first_axis(self: Any, axis: Any, operands: Any, dims: Any) -> Any:
    return self.bind(*operands), 0


def reversed_batch(self: Any, axis: Any, operands: Any, dims: Any) -> Any:
    return lax.rev(self.bind(*operands), dims), dims[0]


WRONG = {
    "value": square(lower=cubed),
    "derivative": square(partial=staticmethod(lambda x: 2.001 * x)),
    "second derivative": square(partial=staticmethod(lambda x: lax.stop_gradient(2 * x))),
    "linearization": square(linearize=other_linearization),
    "dtype of the tangent": square(jvp=narrow),
    "place of the batch": square(batch=first_axis),
    "order of the batch": square(batch=reversed_batch),
    "transpose": linear(transpose=lambda self, ct, x: [2 * ct]),
    "dtype of the cotangent": linear(transpose=narrow_transpose),
    "missing cotangent": linear(transpose=lambda self, ct, x: [None]),
    "dtype": Row("wrong_dtype", lambda x: convert(x, np.float32), lambda x: x),
    "integer result": Row("wrong_kind", lambda x: convert(x, np.int32), np.trunc, differentiable=False),
    "infinity": Row(
        "wrong_infinity", lambda x: lax.clamp(F32(-9), x, F32(9)), lambda x: x, dtypes=("float32",), specials=True
    ),
    "shape": Row("wrong_shape", lambda x: lax.reshape(x, (x.size,)), lambda x: x),
}


@pytest.mark.full
def test_the_right_operations_pass() -> None:
    every_check(square())
    every_check(linear())


@pytest.mark.full
@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_operation_fails(fault: str) -> None:
    with pytest.raises((AssertionError, TypeError)):
        every_check(WRONG[fault])


def test_integer_arguments_are_in_their_domain() -> None:
    made = Arg((50,), domain=(0, 5), dtype="int32").make("float32", np.random.default_rng(0))
    assert made.dtype == np.int32
    assert made.min() >= 0 and made.max() <= 5
