"""The choice among the forms of a product on the CPU, and the form that has its batch dimensions first.

XLA brings operands to (batch, rows, terms) and (batch, terms, columns), though it multiplies with rows of the second as
well. Where batches are moved to the front here, an operand that several products read, as those of attention and of its
gradient do, is transposed in one way, by one kernel.
"""
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from xlamini.core import Avals, ShapedArray, aval_of
from xlamini.core.program.form import Platform
from xlamini.primitives.base.dtype_kinds import COMPLEX, kind_of
from xlamini.primitives.forms.cpu.products.complex_products import form_by_parts
from xlamini.primitives.forms.cpu.products.joined_dimensions import form_as_matrices
from xlamini.primitives.forms.cpu.products.operand_dtypes import Numbers, Product, form_of_dtypes
from xlamini.primitives.shape.shape import transpose


def form_on_cpu(platform: Platform, avals: Avals, out: ShapedArray, numbers: Numbers) -> Product | None:
    """The form of a product for which XLA has fast code; None for its own."""
    if any(batch != tuple(range(len(batch))) for batch in numbers[1]) and not platform.spans_devices:
        return partial(batches_first, numbers, out.dtype)
    has_several = max(avals[0].ndim, avals[1].ndim) > len(numbers[1][0]) + 2
    form = form_as_matrices(platform, avals, out, numbers) if has_several else None
    if form is not None or {a.dtype for a in (*avals, out)} == {np.dtype(np.float32)}:
        return form
    is_complex = kind_of(out.dtype) is COMPLEX
    return form_by_parts(avals, out, numbers) if is_complex else form_of_dtypes(platform, avals, out, numbers)


def batches_first(numbers: Numbers, dtype: np.dtype, bind: Callable[..., Any], *operands: Any) -> Any:
    """The product of operands with these dimension numbers, into this dtype."""
    contract, batch = numbers
    orders = [(*b, *sorted({*range(aval_of(x).ndim)} - {*b})) for x, b in zip(operands, batch, strict=True)]
    moved = [transpose(x, order) for x, order in zip(operands, orders, strict=True)]
    places = tuple(tuple(map(order.index, c)) for order, c in zip(orders, contract, strict=True))
    first = tuple(range(len(batch[0])))
    return bind(*moved, dimension_numbers=(places, (first, first)), preferred_element_type=dtype)
