"""Python's operators on arrays that exist already: each is one compiled program, and one dispatch.

Traced values have theirs from primitives/base/operators.py, which also defines the operators.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xlamini.core import Tracer, enable_x64, memoised, trim
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.core.flags.config import default_device
from xlamini.core.tracing.state import state
from xlamini.numpy.linear_algebra import matmul
from xlamini.numpy.rounding import round
from xlamini.primitives.base.operators import BINARY, COMPARISONS, UNARY, accepts, is_static_integer, power
from xlamini.runtime import ArrayImpl, device_put_value
from xlamini.staging import composite
from xlamini.staging.run.eager.composite import beyond_dtypes

Method = Callable[..., Any]
_NUMBERS = (int, float, complex)
BEYOND = object()


@memoised("helper: numbers on devices", 1024, typed=True)
def _kept(number: Any, dtype: Any, x64: bool, device: Any) -> Any:
    """The number as an array; BEYOND for an int that the dtype beside it, if given, does not hold."""
    return BEYOND if dtype is not None and beyond_dtypes((number, np.empty(0, dtype))) else device_put_value(number)


def _operand(x: Any, array: Any) -> Any:
    """A Python number as an array, cached to save the transfer to the device; BEYOND for one beyond the array's dtype.

    0.0 and -0.0 are equal, so zeros are not cached.
    """
    kind = type(x)
    if kind not in _NUMBERS or not x:
        return x
    kept = _kept(x, array.dtype if kind is int else None, enable_x64.value, default_device.value)
    return kept if kept is BEYOND or state.builder is None else x


def _binary(name: str, run: Any) -> tuple[Method, Method]:
    """The operator's method, and the one for an array on its right side; `run` is a composite.

    An int beyond the array's dtype must not become an array: in the operator itself it has its value.
    """
    operator = run.__wrapped__

    def method(self: Any, other: Any) -> Any:
        try:  # in place of `edge`, which would cost a call more
            kind = type(other)
            if kind is ArrayImpl or kind is Tracer:
                return run(self, other)
            if (number := _operand(other, self)) is BEYOND:
                return operator(self, other)
            return run(self, number) if accepts(name, other) else NotImplemented
        except Exception as error:
            trim(error)
            raise

    @api_boundary
    def reflected(self: Any, other: Any) -> Any:
        if (number := _operand(other, self)) is BEYOND:
            return operator(other, self)
        return run(number, self) if accepts(name, other) else NotImplemented

    return method, reflected


def _power(general: Method) -> Method:
    @api_boundary
    def method(self: Any, other: Any) -> Any:
        return power(self, other) if is_static_integer(other) else general(self, other)

    return method


def _operators() -> dict[str, Method]:
    """Every operator's method by its name."""
    methods: dict[str, Method] = {}
    for name, operator in {**BINARY, **COMPARISONS}.items():
        methods[f"__{name}__"], reflected = _binary(name, composite(ints_fit=True)(operator))
        if name in BINARY:
            methods[f"__r{name}__"] = reflected
    methods["__pow__"] = _power(methods["__pow__"])
    methods.update({f"__{name}__": composite()(operator) for name, operator in UNARY.items()})
    return methods


_matmul, _rmatmul = _binary("matmul", matmul)


@api_boundary
def _round(self: Any, ndigits: int | None = None) -> Any:
    """`round(x)`, of integers, or of the array's dtype if `ndigits` is given."""
    return round(self).astype(int) if ndigits is None else round(self, ndigits)


@api_boundary
def _contains(self: Any, item: Any) -> bool:
    """`item in x`: whether an element equals it."""
    return bool((self == item).any())


def _reversed(self: Any) -> Any:
    return reversed(list(self))


for _name, _method in {**_operators(), "__contains__": _contains, "__reversed__": _reversed}.items():
    setattr(ArrayImpl, _name, _method)
for _kind in (ArrayImpl, Tracer):
    for _name, _method in {"__matmul__": _matmul, "__rmatmul__": _rmatmul, "__round__": _round}.items():
        setattr(_kind, _name, _method)
