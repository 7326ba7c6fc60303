"""Products over several dimensions on the CPU, as products of matrices: the contracted dimensions are joined to one.

XLA transposes an operand whose contracted dimensions are several, or come before several free ones, though its matrix
product reads columns as well as rows. The gradient of the weights of a dense layer on `(batch, length, features)` is
such a product: its kernel for the transposition takes five times as long to compile as the product itself, and up to
a half of the product's time to run.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

from xlamini.core import Avals, Shape, ShapedArray
from xlamini.core.program.form import Platform
from xlamini.primitives.forms.cpu.products.operand_dtypes import Numbers, Product
from xlamini.primitives.shape.shape import reshape


class _Matrix(NamedTuple):
    """The shape of an operand after joining, and the place of its one contracted dimension."""

    shape: Shape
    contracted: int


def form_as_matrices(platform: Platform, avals: Avals, out: ShapedArray, numbers: Numbers) -> Product | None:
    """None where XLA transposes nothing, or has to."""
    contract, batch = _in_order(numbers)
    if not any(map(_is_transposed, avals, contract, batch)):
        return None
    left, right = (_matrix(*each) for each in zip(avals, contract, batch, strict=True))
    if left is None or right is None or platform.spans_devices:
        return None
    return functools.partial(_product, (left, right), out)


def _in_order(numbers: Numbers) -> Numbers:
    """Contracted dimensions by their order in the left operand."""
    (left, right), batch = numbers
    order = sorted(range(len(left)), key=left.__getitem__)
    return (tuple(left[i] for i in order), tuple(right[i] for i in order)), batch


def _is_transposed(aval: ShapedArray, contract: Shape, batch: Shape) -> bool:
    """Whether XLA transposes an operand: of more dimensions than a matrix, with the contracted ones not at the end."""
    return aval.ndim > len(batch) + 2 and bool(contract) and contract[-1] != aval.ndim - 1


def _matrix(aval: ShapedArray, contract: Shape, batch: Shape) -> _Matrix | None:
    """The operand as matrices after its batch dimensions; None if a free dimension is between contracted ones."""
    first, ndim, size = len(batch), aval.ndim, math.prod(aval.shape[d] for d in contract)
    leads = contract == tuple(range(first, first + len(contract)))
    ends = contract == tuple(range(ndim - len(contract), ndim))
    if aval.explicit_sharding is not None or batch != tuple(range(first)) or not (leads or ends):
        return None
    free = math.prod(n for d, n in enumerate(aval.shape[first:], first) if d not in contract)
    sizes = (size, free) if leads else (free, size)
    return _Matrix((*aval.shape[:first], *sizes), first + (not leads))


def _product(matrices: tuple[_Matrix, _Matrix], out: ShapedArray, bind: Callable[..., Any], *operands: Any) -> Any:
    contract = tuple((m.contracted,) for m in matrices)
    batch = tuple(range(len(matrices[0].shape) - 2))
    x, y = (reshape(a, m.shape) for a, m in zip(operands, matrices, strict=True))
    product = bind(x, y, dimension_numbers=(contract, (batch, batch)), preferred_element_type=out.dtype)
    return reshape(product, out.shape)
