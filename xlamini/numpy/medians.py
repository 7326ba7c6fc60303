"""The median, in a module of its own because it alone sorts."""
from __future__ import annotations

import numpy as np

from xlamini.core import aval_of, literal
from xlamini.core.sizes.expression import is_symbolic_shape
from xlamini.numpy.arguments import refuse_out
from xlamini.numpy.reductions import Axis
from xlamini.numpy.statistics import between, flat_rows
from xlamini.primitives import expand_dims, full, index_in_dim, ne, where as select
from xlamini.primitives.reductions.sort import sort_p
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike


@composite(static=("axis", "keepdims", "overwrite_input"))
def median(
    a: ArrayLike, axis: Axis = None, out: None = None, overwrite_input: bool = False, keepdims: bool = False
) -> Array:
    """The middle element over `axis` in sorted order, or the mean of the two in the middle; NaN if one is NaN.

    >>> median(jnp.array([7.0, 1.0, 3.0, 2.0]))
    Array(2.5, dtype=float32)
    """
    refuse_out("median", out)
    x, axes, rows = flat_rows("median", a, axis)
    n = aval_of(x).shape[-1]
    last = rows.ndim
    (x,) = sort_p.bind(x, dimension=last, is_stable=True, num_keys=1)
    low, high, top = (index_in_dim(x, i, last, keepdims=False) for i in ((n - 1) // 2, n // 2, n - 1))
    dtype = aval_of(x).dtype
    middle = low if not is_symbolic_shape((n,)) and n % 2 else between(low, high, full(aval_of(low), 0.5))
    middle = select(ne(top, top), literal(np.nan, dtype), middle)
    return expand_dims(middle, axes) if keepdims else middle
