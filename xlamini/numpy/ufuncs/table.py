"""The ufuncs of `jax.numpy`, with faster methods than a loop where an operation has them."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from xlamini.numpy import arithmetic, bitwise, comparison, cumulative, exponential, reductions
from xlamini.numpy.arguments import as_operand
from xlamini.numpy.ufuncs.ufunc_class import Shortcuts, ufunc
from xlamini.primitives import reduce_or_p
from xlamini.primitives.elementwise import bitwise as bitwise_primitives
from xlamini.primitives.reductions.reductions import reduce_and_p, reduce_xor_p
from xlamini.staging import composite


def _over(reduce: Callable[..., Any]) -> Callable[..., Any]:
    """A reduction that takes no dtype, as a ufunc's method."""

    def reduced(a: Any, axis: Any, dtype: Any, out: None, keepdims: bool, initial: Any, where: Any) -> Any:
        x = as_operand("reduce", a)
        return reduce(x if dtype is None else x.astype(dtype), axis, out, keepdims, initial, where)

    return reduced


def _by(monoid: reductions.AxisReduction, prepared: Callable[[str, Any], Any] = as_operand) -> Callable[..., Any]:
    """A reduction in the dtype of the array, or for truth values of whether it is not 0."""

    @composite(static=("axis", "dtype", "keepdims"))
    def reduced(a: Any, axis: Any, dtype: Any, out: None, keepdims: bool, initial: Any, where: Any) -> Any:
        x = prepared("reduce", a if dtype is None else as_operand("reduce", a).astype(dtype))
        return reductions.reduce("reduce", monoid, x, axis, keepdims, initial, where)

    return reduced


_BIT_AND = reductions.AxisReduction(
    reduce_and_p, bitwise_primitives.bitwise_and, lambda dtype: 1 if dtype.kind == "b" else -1
)
_BIT_XOR = reductions.AxisReduction(reduce_xor_p, bitwise_primitives.bitwise_xor, lambda dtype: 0)
_BIT_OR = reductions.AxisReduction(reduce_or_p, bitwise_primitives.bitwise_or, lambda dtype: 0)


add: Final = ufunc(arithmetic.add, 2, 1, identity=0, shortcuts=Shortcuts(reductions.sum, cumulative.cumsum, "add"))
multiply: Final = ufunc(
    arithmetic.multiply, 2, 1, identity=1, shortcuts=Shortcuts(reductions.prod, cumulative.cumprod, "multiply")
)
subtract: Final = ufunc(arithmetic.subtract, 2, 1, shortcuts=Shortcuts(update="subtract"))
negative: Final = ufunc(arithmetic.negative, 1, 1)
maximum: Final = ufunc(arithmetic.maximum, 2, 1, shortcuts=Shortcuts(_over(reductions.max), None, "max"))
minimum: Final = ufunc(arithmetic.minimum, 2, 1, shortcuts=Shortcuts(_over(reductions.min), None, "min"))
logaddexp: Final = ufunc(exponential.logaddexp, 2, 1, identity=-math.inf)
logaddexp2: Final = ufunc(exponential.logaddexp2, 2, 1, identity=-math.inf)
bitwise_and: Final = ufunc(bitwise.bitwise_and, 2, 1, identity=-1, shortcuts=Shortcuts(_by(_BIT_AND)))
bitwise_or: Final = ufunc(bitwise.bitwise_or, 2, 1, identity=0, shortcuts=Shortcuts(_by(_BIT_OR)))
bitwise_xor: Final = ufunc(bitwise.bitwise_xor, 2, 1, identity=0, shortcuts=Shortcuts(_by(_BIT_XOR)))
logical_and: Final = ufunc(
    comparison.logical_and, 2, 1, identity=True, shortcuts=Shortcuts(_by(reductions.AND, reductions.nonzero_mask))
)
logical_or: Final = ufunc(
    comparison.logical_or, 2, 1, identity=False, shortcuts=Shortcuts(_by(reductions.OR, reductions.nonzero_mask))
)
logical_xor: Final = ufunc(
    comparison.logical_xor, 2, 1, identity=False, shortcuts=Shortcuts(_by(_BIT_XOR, reductions.nonzero_mask))
)
