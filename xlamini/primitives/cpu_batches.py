"""Products on the CPU whose batch dimensions are not the first: they are moved to the front.

XLA brings operands to (batch, rows, terms) and (batch, terms, columns), though it multiplies with rows of the second as
well. Where batches are moved to the front here, an operand that several products read, as those of attention and of its
gradient do, is transposed in one way, by one kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xlamini.core import aval_of
from xlamini.primitives.cpu_products import Numbers
from xlamini.primitives.shape import transpose


def batches_first(numbers: Numbers, dtype: np.dtype, bind: Callable[..., Any], *operands: Any) -> Any:
    """The product of operands with these dimension numbers, into this dtype."""
    contract, batch = numbers
    orders = [(*b, *sorted({*range(aval_of(x).ndim)} - {*b})) for x, b in zip(operands, batch, strict=True)]
    moved = [transpose(x, order) for x, order in zip(operands, orders, strict=True)]
    places = tuple(tuple(map(order.index, c)) for order, c in zip(orders, contract, strict=True))
    first = tuple(range(len(batch[0])))
    return bind(*moved, dimension_numbers=(places, (first, first)), preferred_element_type=dtype)
