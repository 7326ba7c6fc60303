"""Random integers of a range. The remainder of twice as many bits as the result has favours no number noticeably."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from xlamini.core import Shape, aval_of, canonicalize_dtype, check_user_dtype, iinfo, issubdtype, literal
from xlamini.primitives import (
    add,
    broadcast_to,
    broadcasted,
    convert,
    gt,
    le,
    max as maximum,
    min as minimum,
    mul,
    split_p,
    sub,
    where,
)
from xlamini.primitives.elementwise.arithmetic import rem
from xlamini.primitives.random.random_keys import bits_p
from xlamini.random.arguments import broadcast_shape, checked_shape, sampler
from xlamini.random.uniform import halves
from xlamini.runtime import Array

_INT32 = np.dtype(np.int32)


def randint(key: Any, shape: Any, minval: Any, maxval: Any, dtype: Any = None, *, out_sharding: Any = None) -> Array:
    """Integers from minval up to, not including, maxval, by default of the dtype of Python's int.

    Bounds are ints or arrays that broadcast to `shape`; where the range is empty the result is `minval`. Arrays of
    the device beyond the dtype are moved to its ends. Raises OverflowError for numbers beyond the range of the dtype;
    TypeError for a dtype that is no integer,
    ValueError for bounds that do not broadcast.

    >>> xlamini.random.randint(xlamini.random.key(0), (3,), 0, 9)
    Array([4, 3, 2], dtype=int32)
    """
    found = canonicalize_dtype(int) if dtype is None else check_user_dtype(dtype, "randint")
    limits = _limits(found)
    low, high = limits.number("minval", minval, limits.last), limits.number("maxval", maxval, limits.end)
    full = isinstance(maxval, int) and limits.exceeded_by(maxval)
    return _randint(key, checked_shape("randint", shape), low, high, full, found, out_sharding=out_sharding)  # type: ignore[call-arg]


class _RangeLimits(NamedTuple):
    """The limits of a range: the dtype that is drawn, its first and last number, the greatest `maxval`."""

    drawn: np.dtype
    first: int
    last: int
    end: int

    def number(self, name: str, bound: Any, greatest: int) -> Any:
        """A number of Python or NumPy within the limits; arrays come later, in one program with the draw."""
        if isinstance(bound, np.generic | np.ndarray) and bound.size:
            self._check(name, bound.min().item(), bound.max().item())
        if not isinstance(bound, int | float):
            return bound
        self._check(name, bound, bound)
        return self.drawn.type(min(max(int(bound), self.first), greatest))

    def _check(self, name: str, least: Any, most: Any) -> None:
        """Raise OverflowError for a bound that the dtype does not hold; `maxval` may lie one beyond it."""
        if not (self.first <= least and most <= self.last + (name == "maxval")):
            raise OverflowError(
                f"randint: {name} is {least if least < self.first else most}, but the dtype holds {self.first} to "
                f"{self.last}; give a wider dtype (64-bit dtypes need enable_x64)"
            )

    def array(self, bound: Any, greatest: int) -> Any:
        """A bound of any integer dtype within the limits."""
        own = aval_of(bound).dtype
        if (own == self.drawn and greatest == iinfo(own).max) or not issubdtype(own, np.integer):
            return convert(bound, self.drawn)
        least, most = _nearest(self.first, own), _nearest(greatest, own)
        return convert(maximum(least, minimum(bound, most)), self.drawn)

    def exceeded_by(self, bound: Any) -> Any:
        """True if a range up to `bound` has more numbers than one up to the greatest bound."""
        if (isinstance(bound, int) and bound <= self.end) or self.end > self.last:
            return False
        if isinstance(bound, int):
            return True
        own = aval_of(bound).dtype
        return gt(bound, _nearest(self.end, own) if issubdtype(own, np.integer) else literal(self.end, own))


def _limits(dtype: np.dtype) -> _RangeLimits:
    """Integers narrower than 32 bits are drawn as int32, which has room for the bound behind their last number."""
    if not issubdtype(dtype, np.integer):
        raise TypeError(f"randint: dtype must be an integer dtype such as 'int32', got {dtype}")
    info = iinfo(dtype)
    narrow = info.bits < 32
    return _RangeLimits(_INT32 if narrow else dtype, info.min, info.max, info.max + narrow)


def _nearest(value: int, dtype: np.dtype) -> Any:
    """The nearest value to a number in the dtype."""
    info = iinfo(dtype)
    return literal(min(max(value, info.min), info.max), dtype)


@sampler("shape", "full", "dtype", name="randint")
def _randint(key: Any, shape: Shape, minval: Any, maxval: Any, full: bool, dtype: np.dtype) -> Any:
    broadcast_shape("randint", shape, minval=minval, maxval=maxval)
    limits = _limits(dtype)
    beyond = full if aval_of(maxval).dtype == limits.drawn else limits.exceeded_by(maxval)
    low, high = broadcasted("randint", limits.array(minval, limits.last), limits.array(maxval, limits.end))
    span = _span(low, high, beyond, np.dtype(f"uint{limits.drawn.itemsize * 8}"))
    drawn = add(broadcast_to(low, shape), convert(_below(key, shape, span), limits.drawn))
    return convert(drawn, dtype)


def _span(low: Any, high: Any, full: Any, dtype: np.dtype) -> Any:
    """The number of integers in the range, at least one; 0 means all that the dtype holds."""
    one = literal(1, dtype)
    empty = le(high, low)
    span = convert(sub(high, low), dtype)
    return where(empty, one, where(full, add(span, one), span))


def _below(key: Any, shape: Shape, span: Any) -> Any:
    """Unsigned integers below `span`: the remainder of a number of twice their width."""
    dtype = aval_of(span).dtype
    width = dtype.itemsize * 8
    span = broadcast_to(span, shape)
    keys = halves(split_p.bind(key, shape=(2,)))
    high, low = (bits_p.bind(k, bit_width=width, shape=shape) for k in keys)
    root = rem(literal(2 ** (width // 2), dtype), span)
    weight = rem(mul(root, root), span)
    return rem(add(mul(rem(high, span), weight), rem(low, span)), span)
