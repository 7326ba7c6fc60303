"""Arguments of functions of matrices: arrays of inexact dtype and of the rank and shape that are needed."""
from __future__ import annotations

from typing import Any

from xlamini.core import ShapeError
from xlamini.numpy.arguments import as_operand
from xlamini.primitives import promoted_inexact_dtypes
from xlamini.runtime import Array


def inexact(name: str, *operands: Any) -> list[Array]:
    """The operands in one inexact dtype; TypeError for anything but arrays."""
    return list(promoted_inexact_dtypes(*(as_operand(name, x) for x in operands)))


def matrices(name: str, x: Any) -> Array:
    """An array of inexact dtype that is a matrix or a stack of them; else ShapeError."""
    (x,) = inexact(name, x)
    if x.ndim < 2:
        raise ShapeError(f"{name}: a matrix or a stack of them is needed, got {shown(x)}; give it rank 2 at least")
    return x


def squares(name: str, x: Any) -> Array:
    """An array of inexact dtype that is a square matrix or a stack of them; else ShapeError."""
    x = matrices(name, x)
    if x.shape[-1] != x.shape[-2]:
        raise ShapeError(f"{name}: square matrices are needed, got {shown(x)}; its last two sizes must be equal")
    return x


def shown(x: Any) -> str:
    return x.aval.str_short(short_dtypes=False)
