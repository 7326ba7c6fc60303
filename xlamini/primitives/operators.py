"""Python's operators on traced values: NumPy's promotion of dtypes, NumPy's broadcasting of shapes.

`promoted` is the one place where operands of an operator, or of a function of xlamini.numpy, are brought together.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xlamini.core.dtypes import result_type
from xlamini.core.errors import ShapeError
from xlamini.core.jaxpr import Literal
from xlamini.core.tracer import Tracer, aval_of, literal
from xlamini.primitives.arithmetic import add, div, mul, neg, sub
from xlamini.primitives.convert import convert
from xlamini.primitives.shape import broadcast_in_dim

_SCALARS = (bool, int, float, complex)


def promoted(name: str, *operands: Any) -> Sequence[Any]:
    """Operands in one dtype, and of one shape but for scalars."""
    first = getattr(operands[0], "aval", None)
    if first is not None and all(getattr(x, "aval", None) is first for x in operands):
        return operands
    return broadcasted(name, *promoted_dtypes(*operands))


def promoted_dtypes(*operands: Any) -> Sequence[Any]:
    """Operands in the dtype that JAX's promotion lattice gives them."""
    dtype, weak = result_type(*operands, return_weak_type_flag=True)
    return [in_dtype(x, dtype, weak) for x in operands]


def in_dtype(x: Any, dtype: Any, weak: bool = False) -> Any:
    """A value in a dtype; a Python scalar becomes a literal of it."""
    if type(x) in _SCALARS and not weak:
        return literal(x, dtype)
    return convert(x, dtype, weak)


def broadcasted(name: str, *operands: Any) -> Sequence[Any]:
    """Operands of rank 0, or of the one shape that NumPy's broadcasting gives them."""
    shapes = {aval_of(x).shape for x in operands} - {()}
    if len(shapes) < 2:
        return operands
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        found = ", ".join(aval_of(x).str_short(short_dtypes=False) for x in operands)
        raise ShapeError(
            f"{name}: shapes do not broadcast: {found}; sizes must be equal or 1, counted from the last axis"
        ) from None
    return [broadcast_to(x, shape) for x in operands]


def broadcast_to(x: Any, shape: tuple[int, ...]) -> Any:
    """A value of rank 0 as it is, any other in `shape`."""
    own = aval_of(x).shape
    if own in ((), shape):
        return x
    return broadcast_in_dim(x, shape, range(len(shape) - len(own), len(shape)))


def _binary(name: str, primitive: Any) -> tuple[Any, Any]:
    def method(self: Any, other: Any) -> Any:
        return primitive.bind(*promoted(name, self, other)) if _is_operand(other) else NotImplemented

    def reflected(self: Any, other: Any) -> Any:
        return primitive.bind(*promoted(name, other, self)) if _is_operand(other) else NotImplemented

    return method, reflected


def _is_operand(x: Any) -> bool:
    return hasattr(x, "aval") or type(x) in _SCALARS or isinstance(x, np.generic | np.ndarray)


_ARITHMETIC = {"add": add, "sub": sub, "mul": mul, "truediv": div}


def _install() -> None:
    """Give tracers, and the literals that rules meet as operands, the operators that rules are written with."""
    for kind in (Tracer, Literal):
        for name, primitive in _ARITHMETIC.items():
            method, reflected = _binary(name, primitive)
            setattr(kind, f"__{name}__", method)
            setattr(kind, f"__r{name}__", reflected)
        kind.__neg__ = lambda self: neg.bind(self)  # type: ignore[union-attr]
        kind.__array_ufunc__ = None  # type: ignore[union-attr]  # NumPy's operators give way to ours


_install()
