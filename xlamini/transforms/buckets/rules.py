"""How each primitive goes on where its operands are longer than what they hold; a primitive without a rule is refused.

A rule takes the sizes, the equation and the padded operands. What it returns must have the right data; beyond the data
it may have anything.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import CallLike, Equation
from xlamini.core.dtypes.limits import finfo
from xlamini.core.errors import PaddingError
from xlamini.core.program.bindable import further
from xlamini.core.sizes.expression import SymbolicSize
from xlamini.primitives import convert, highest, lowest, zeros
from xlamini.primitives.base.dtype_kinds import COMPLEX, FLOAT, kind_of
from xlamini.primitives.indexing.dynamic_update_slice import dynamic_update_slice_in_dim
from xlamini.primitives.shape.slice import slice_in_dim
from xlamini.primitives.windows.geometry import dilated
from xlamini.transforms.buckets.padded_sizes import PaddedSizes, is_padded, window

Rule = Callable[..., Any]


def bind(sizes: PaddedSizes, eqn: Equation, *operands: Any) -> Any:
    """An operation that makes each element of the data from data: the same one."""
    return eqn.primitive.bind(*operands, **eqn.params)


def resized(name: str) -> Rule:
    """An operation of which one param is a shape."""

    def rule(sizes: PaddedSizes, eqn: Equation, *operands: Any) -> Any:
        return eqn.primitive.bind(*operands, **{**eqn.params, name: sizes.rooms(eqn.params[name])})

    return rule


def reduction(sizes: PaddedSizes, eqn: Equation, x: Any) -> Any:
    """A reduction, or a softmax, over the elements and its neutral element."""
    aval, start = eqn.invars[0].aval, further(eqn.primitive, "start")
    return eqn.primitive.bind(sizes.masked(x, aval, eqn.params["axes"], start(aval.dtype)), **eqn.params)


def general_reduction(sizes: PaddedSizes, eqn: Equation, *operands: Any) -> Any:
    """A reduction by a user's function, over the elements and its initial values, which change nothing."""
    axes, count = eqn.params["dimensions"], len(eqn.outvars)
    arrays = zip(operands[:count], eqn.invars, operands[count:], strict=False)
    masked = [sizes.masked(x, atom.aval, axes, start) for x, atom, start in arrays]
    return eqn.primitive.bind(*masked, *operands[count:], **eqn.params)


def cumulative(sizes: PaddedSizes, eqn: Equation, x: Any) -> Any:
    """From the front it does not reach the padding before the data end; from the back it begins with it."""
    aval, params = eqn.invars[0].aval, eqn.params
    if params["reverse"]:
        x = sizes.masked(x, aval, [params["axis"]], further(eqn.primitive, "start")(aval.dtype))
    return eqn.primitive.bind(x, **params)


def sort(sizes: PaddedSizes, eqn: Equation, *operands: Any) -> Any:
    """The padding is last: it has the largest keys, and a stable sort keeps data with these in front of it."""
    params, avals = eqn.params, [a.aval for a in eqn.invars]
    keys = [
        sizes.masked(x, aval, [params["dimension"]], _last(aval.dtype))
        for x, aval in zip(operands[: params["num_keys"]], avals, strict=False)
    ]
    return eqn.primitive.bind(*keys, *operands[len(keys) :], **{**params, "is_stable": True})


def _last(dtype: Any) -> Any:
    """What a sort puts last."""
    return finfo(dtype).dtype.type("nan") if kind_of(dtype) in FLOAT | COMPLEX else highest(dtype)


def dot_general(sizes: PaddedSizes, eqn: Equation, *operands: Any) -> Any:
    """Both sides are masked along the summed dimensions, as the padding may be infinite."""
    (contracting, _) = eqn.params["dimension_numbers"]
    masked = [
        sizes.masked(x, a.aval, axes, 0)
        for x, a, axes in zip(operands, eqn.invars, contracting, strict=True)
    ]
    return eqn.primitive.bind(*masked, **eqn.params)


def dim_as_value(sizes: PaddedSizes, eqn: Equation) -> Any:
    aval = eqn.outvars[0].aval
    return convert(sizes.data(eqn.params["dim"]), aval.dtype, aval.weak_type)


def assume_unequal(sizes: PaddedSizes, eqn: Equation) -> Any:
    x, y, place = (eqn.params[name] for name in ("x", "y", "place"))
    raise PaddingError(
        f"{place} goes on as if {x} and {y} differed, but a bucket has sizes for which they do not; pass other sizes "
        "for the buckets, so that they are on one side, or write the function so that it does not compare them"
    )


def concatenate(sizes: PaddedSizes, eqn: Equation, *operands: Any) -> Any:
    """Each operand is written behind the data of those before, over their padding; what is too much is cut off."""
    axis, out = eqn.params["dimension"], eqn.outvars[0].aval
    lengths = [atom.aval.shape[axis] for atom in eqn.invars]
    if not any(type(length) is SymbolicSize for length in lengths):
        return bind(sizes, eqn, *operands)
    shape, start = list(sizes.rooms(out.shape)), 0
    room = shape[axis]
    shape[axis] += max(map(sizes.room, lengths))
    result = zeros(out.update(shape=tuple(shape)))
    for x, length in zip(operands, lengths, strict=True):
        result = dynamic_update_slice_in_dim(result, x, sizes.data(start), axis)
        start = start + length
    return slice_in_dim(result, 0, room, axis=axis)


def split(sizes: PaddedSizes, eqn: Equation, x: Any) -> Any:
    axis, starts, start = eqn.params["axis"], [], 0
    for size in eqn.params["sizes"]:
        starts.append((start, size))
        start = start + size
    return [window(x, axis, sizes.data(start), sizes.room(size)) for start, size in starts]


def reverse(sizes: PaddedSizes, eqn: Equation, x: Any) -> Any:
    """The data are last then, and moved to the front."""
    out, aval = eqn.primitive.bind(x, **eqn.params), eqn.invars[0].aval
    for axis in eqn.params["dimensions"]:
        if type(size := aval.shape[axis]) is SymbolicSize:
            out = window(out, axis, sizes.surplus(size), sizes.room(size))
    return out


def top_k(sizes: PaddedSizes, eqn: Equation, x: Any) -> Any:
    """The padding is what it takes last, and of equal ones the first are taken."""
    aval, params = eqn.invars[0].aval, eqn.params
    if any(type(value) is SymbolicSize for value in params.values()):
        raise PaddingError("how many it takes is symbolic")
    axis = params.get("axis", -1) % aval.ndim
    return eqn.primitive.bind(sizes.masked(x, aval, [axis], _least(aval.dtype)), **params)


def _least(dtype: Any) -> Any:
    """What is first in the order of a top_k: the NaN with all bits, its sign too; else the lowest value."""
    if kind_of(dtype) not in FLOAT:
        return lowest(dtype)
    ones = np.full(dtype.itemsize, 255, np.uint8).view(dtype)[0]
    return ones if np.isnan(ones) else lowest(dtype)


def convolution(sizes: PaddedSizes, eqn: Equation, *operands: Any) -> Any:
    """What lies beyond the data counts as the zeros that a convolution pads with itself."""
    params, avals = eqn.params, [a.aval for a in (*eqn.invars, *eqn.outvars)]
    masked = [sizes.masked(x, a, range(a.ndim), 0) for x, a in zip(operands, avals, strict=False)]
    operand, kernel, results = (
        [aval.shape[d] for d in spec[2:]] for aval, spec in zip(avals, params["dimension_numbers"], strict=True)
    )
    reach = dilated(sizes.rooms(kernel), params["rhs_dilation"])
    axes = Windows(params["dimension_numbers"].out_spec[2:], params["window_strides"], params["padding"], results)
    padding = axes.padding_for_room(sizes, dilated(sizes.rooms(operand), params["lhs_dilation"]), reach)
    return axes.cut(sizes, eqn.primitive.bind(*masked, **{**params, "padding": padding}))


def windows(sizes: PaddedSizes, eqn: Equation, x: Any) -> Any:
    """A reduction of windows, in which what lies beyond the data changes nothing."""
    params, aval, start = eqn.params, eqn.invars[0].aval, further(eqn.primitive, "start")
    masked = sizes.masked(x, aval, range(aval.ndim), start(aval.dtype))
    reach = dilated(params["window_dimensions"], params["window_dilation"])
    axes = Windows(range(aval.ndim), params["window_strides"], params["padding"], eqn.outvars[0].aval.shape)
    padding = axes.padding_for_room(sizes, dilated(sizes.rooms(aval.shape), params["base_dilation"]), reach)
    return axes.cut(sizes, eqn.primitive.bind(masked, **{**params, "padding": padding}))


class Windows(NamedTuple):
    """The axes along which windows move, and for each the stride, the padding, and the number of results."""

    axes: Sequence[int]
    strides: Sequence[int]
    padding: Sequence[tuple[Any, Any]]
    results: Sequence[Any]

    def padding_for_room(
        self, sizes: PaddedSizes, operand: Sequence[int], reach: Sequence[int]
    ) -> tuple[tuple[int, int], ...]:
        """The padding for which there are as many results as there is room for, and as many as are cut in front."""
        edges = []
        for n, k, count, stride, (low, _) in zip(operand, reach, self.results, self.strides, self.padding, strict=True):
            front = sizes.room(low)
            wanted = sizes.room(count) + (front if type(low) is SymbolicSize else 0)
            edges.append((front, (wanted - 1) * stride + k - n - front))
        return tuple(edges)

    def cut(self, sizes: PaddedSizes, result: Any) -> Any:
        """The results without those before the first: in front the padding was that for the largest size."""
        for axis, stride, (low, _), count in zip(self.axes, self.strides, self.padding, self.results, strict=True):
            if type(low) is SymbolicSize:
                if stride > 1:
                    raise PaddingError("its padding in front depends on a size, and it has strides")
                result = window(result, axis, sizes.surplus(low), sizes.room(count))
        return result


def stacks(sizes: PaddedSizes, eqn: Equation, *operands: Any) -> Any:
    """Operations on matrices or signals, of which only the number is padded."""
    batch = eqn.invars[0].aval.ndim - len(eqn.params.get("fft_lengths", (0, 0)))
    for atom in (*eqn.invars, *eqn.outvars):
        if any(type(size) is SymbolicSize for size in atom.aval.shape[batch:]):
            raise PaddingError(f"the padding would be part of what {eqn.primitive.name} works on")
    return bind(sizes, eqn, *operands)


def call(sizes: PaddedSizes, eqn: Equation, *operands: Any) -> Any:
    """The equations of the jaxpr that is called."""
    assert isinstance(eqn.primitive, CallLike)
    return sizes.run(eqn.params[eqn.primitive.called], operands)


def touches_sizes(eqn: Equation) -> bool:
    """Whether an operand or a result is padded."""
    return any(is_padded(a.aval) for a in (*eqn.invars, *eqn.outvars))
