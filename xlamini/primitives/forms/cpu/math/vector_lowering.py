"""CPU forms made from formulas.

    @vectorised()
    def arctangent(x):
        ...

A formula takes arrays of one shape, all in float32 or all in float64, and gives one of the same type; narrower floats
are computed in float32 and rounded. It is traced with x64 on.
"""
from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from xlamini.core import Primitive, ShapedArray, aval_of, enable_x64
from xlamini.core.program.form import Form
from xlamini.primitives.elementwise.arithmetic import div
from xlamini.primitives.elementwise.bitwise import bitwise_and, bitwise_or, shift_right_logical
from xlamini.primitives.elementwise.comparison import gt, lt
from xlamini.primitives.elementwise.convert_element_type import convert
from xlamini.primitives.forms.cpu.math.floats import BITS, FLOAT32, FLOAT64, bits_of, from_bits
from xlamini.primitives.forms.parts import case
from xlamini.primitives.reductions.reductions import reduce_or

Formula = Callable[..., Any]
FormOf = Callable[[Primitive, ShapedArray], Form | None]
"""The form of an operation, by the type of its result; None where XLA's op is better."""

_FEW = 512
"""Below so many elements XLA's op is about as fast: looking at all elements and choosing costs a few microseconds."""


def vectorised(largest_float64: float | None = None, few: int = 0) -> Callable[[Formula], FormOf]:
    """Decorator: the form of an operation through a formula.

    Arrays of fewer than `few` elements in float32 are left to XLA's op. That is compiled sooner and, in a program of
    its own, faster: XLA does not count its own sine as work, and runs a program of little work in the calling thread,
    but hands others over to another thread, or to several, which takes 4 to 10 microseconds.

    `largest_float64` is the magnitude up to which a formula of one operand is right in float64. Arrays that hold larger
    finite numbers are left to XLA's op, which needs a look at all elements first; so are arrays of few elements.
    """

    def form_of(formula: Formula) -> FormOf:
        @functools.wraps(formula)
        def form(primitive: Primitive, aval: ShapedArray) -> Form | None:
            double = aval.dtype == FLOAT64
            compute = functools.partial(_computed, formula, aval.dtype)
            if double and largest_float64 is not None:
                chosen = functools.partial(_up_to, largest_float64, compute, primitive.bind)
                return Form(chosen, is_formula=True) if aval.size >= _FEW else None
            return Form(compute, is_formula=True) if double or aval.size >= few else None

        return form

    return form_of


def _computed(formula: Formula, dtype: np.dtype, *operands: Any) -> Any:
    wide = dtype if dtype.itemsize >= 4 else FLOAT32
    with enable_x64(True):
        return convert(_costly(formula(*[convert(x, wide) for x in operands])), dtype)


def _up_to(largest: float, compute: Formula, by_xla: Formula, x: Any) -> Any:
    size = abs(x)
    within = reduce_or(bitwise_and(gt(size, largest), lt(size, math.inf)), range(aval_of(x).ndim))
    return case(convert(within, np.dtype(np.int32)), (compute, by_xla), x)


def _costly(x: Any) -> Any:
    """A copy of the value through a division of its bits by 1, opaque to XLA's cost model and removed by LLVM.

    XLA computes simple operations again wherever their results are used, for every row that an array is broadcast to;
    of divisions, as of its own sine, it keeps the results.
    """
    bits = bits_of(x)
    zero = shift_right_logical(shift_right_logical(bits, BITS[aval_of(x).dtype].width - 1), 1)
    return from_bits(div(bits, bitwise_or(zero, 1)))
