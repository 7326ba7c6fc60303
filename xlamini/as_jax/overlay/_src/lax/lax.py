"""`jax._src.lax.lax`: conversions that keep a type weak, and constants."""
from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from xlamini import Array
from xlamini.as_jax.missing_names import fall_through
from xlamini.core import aval_of, canonicalize_dtype
from xlamini.numpy import asarray, broadcast_to
from xlamini.primitives.convert_element_type import convert
from xlamini.typing import DTypeLike

__getattr__ = fall_through(__name__)


def _convert_element_type(operand: Any, new_dtype: DTypeLike | None = None, weak_type: bool = False) -> Array:
    """The operand as an array of a dtype, that of the operand by default, which adapts if `weak_type` says so."""
    array = asarray(operand)
    return convert(array, array.dtype if new_dtype is None else canonicalize_dtype(new_dtype), weak_type)


def _const(example: Any, val: Any) -> Any:
    """A number in the dtype of an example."""
    aval = aval_of(example)
    return val if aval.weak_type and np.isscalar(val) else np.array(val, aval.dtype)


def _delta(dtype: DTypeLike, shape: Sequence[int], axes: Sequence[int]) -> Array:
    """Ones where the indices along these axes are equal, zeros elsewhere."""
    places = np.ix_(*map(np.arange, shape))
    equal = np.ones((1,) * len(shape), bool)
    for left, right in itertools.pairwise(axes):
        equal = equal & (places[left] == places[right])
    return broadcast_to(asarray(equal, dtype), tuple(shape))
