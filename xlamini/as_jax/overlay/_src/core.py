"""`jax._src.core`: comparisons of types and sizes, beside the names of `jax.core` and of `jax`."""

from collections.abc import Hashable, Sequence
from typing import Any

from xlamini.as_jax.missing_names import fall_through
from xlamini.core.avals import ShapedArray, aval_of
from xlamini.extend import trace_is_clean

__getattr__ = fall_through(__name__)

DimSize = AxisSize = int
AxisName = Hashable


def typematch(t1: ShapedArray, t2: ShapedArray) -> bool:
    """Whether two types are the same but for weakness."""
    return (t1.shape, t1.dtype) == (t2.shape, t2.dtype)


typecompat = typematch


def typecheck(aval: ShapedArray, x: Any) -> bool:
    """Whether a value has a type."""
    return typematch(aval, aval_of(x))


def is_constant_shape(s: Sequence[Any]) -> bool:
    """Whether a shape is static; it always is."""
    return all(isinstance(size, int) for size in s)


def reset_trace_state() -> bool:
    """Whether no function is being traced, as there is no state that would need to be reset."""
    return trace_is_clean()
