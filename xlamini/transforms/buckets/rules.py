"""How each primitive goes on where its operands are longer than what they hold; a primitive without a rule is refused.

A rule takes the sizes, the equation and the padded operands. What it returns must have the right data; beyond the data
it may have anything.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xlamini.core import CallLike, Equation, literal
from xlamini.core.dtypes.limits import finfo
from xlamini.core.errors import PaddingError
from xlamini.core.program.bindable import further
from xlamini.core.sizes.expression import SymbolicSize
from xlamini.primitives import convert, highest, lowest, zeros
from xlamini.primitives.base.dtype_kinds import COMPLEX, FLOAT, kind_of
from xlamini.primitives.elementwise.arithmetic import sub
from xlamini.primitives.indexing.dynamic_update_slice import dynamic_update_slice_in_dim
from xlamini.primitives.windows.geometry import dilated
from xlamini.transforms.buckets.padded_sizes import INT32, PaddedSizes, is_padded, window

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
    """Each operand is written behind the data of those before, over their padding."""
    axis, out = eqn.params["dimension"], eqn.outvars[0].aval
    if type(out.shape[axis]) is not SymbolicSize:
        return bind(sizes, eqn, *operands)
    result, start = zeros(sizes.padded_type(out)), 0
    for x, atom in zip(operands, eqn.invars, strict=True):
        result = dynamic_update_slice_in_dim(result, x, sizes.data(start), axis)
        start = start + atom.aval.shape[axis]
    return result


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
            room = sizes.room(size)
            out = window(out, axis, sub(literal(room, INT32), sizes.data(size)), room)
    return out


def top_k(sizes: PaddedSizes, eqn: Equation, x: Any) -> Any:
    """The padding has the smallest value, and of equal ones the first are taken."""
    aval, params = eqn.invars[0].aval, eqn.params
    if any(type(value) is SymbolicSize for value in params.values()):
        raise PaddingError("how many it takes is symbolic")
    axis = params.get("axis", -1) % aval.ndim
    return eqn.primitive.bind(sizes.masked(x, aval, [axis], lowest(aval.dtype)), **params)


def convolution(sizes: PaddedSizes, eqn: Equation, *operands: Any) -> Any:
    """What lies beyond the data counts as the zeros that a convolution pads with itself.

    In front it pads for the largest size, and what that is too much is cut off the result.
    """
    params, out = eqn.params, eqn.outvars[0].aval
    masked = [sizes.masked(x, a.aval, range(a.aval.ndim), 0) for x, a in zip(operands, eqn.invars, strict=True)]
    result = eqn.primitive.bind(*masked, **{**params, "padding": tuple(_padding_for_room(sizes, eqn))})
    for axis, (low, _), stride in zip(
        params["dimension_numbers"].out_spec[2:], params["padding"], params["window_strides"], strict=True
    ):
        if type(low) is SymbolicSize:
            if stride > 1:
                raise PaddingError("its padding in front depends on a size, and it has strides")
            surplus = sub(literal(sizes.room(low), INT32), sizes.data(low))
            result = window(result, axis, surplus, sizes.room(out.shape[axis]))
    return result


def _padding_for_room(sizes: PaddedSizes, eqn: Equation) -> list[tuple[int, int]]:
    """The padding for which there are as many results as there is room for, and as many as may be cut off in front."""
    params, avals = eqn.params, [a.aval for a in (*eqn.invars, *eqn.outvars)]
    operand, kernel, results = (
        [sizes.room(aval.shape[d]) for d in spec[2:]]
        for aval, spec in zip(avals, params["dimension_numbers"], strict=True)
    )
    operand, kernel = dilated(operand, params["lhs_dilation"]), dilated(kernel, params["rhs_dilation"])
    edges = []
    for n, k, count, stride, (low, _) in zip(
        operand, kernel, results, params["window_strides"], params["padding"], strict=True
    ):
        front, cut = sizes.room(low), type(low) is SymbolicSize
        edges.append((front, (count + cut * front - 1) * stride + k - n - front))
    return edges


def stacks(sizes: PaddedSizes, eqn: Equation, *operands: Any) -> Any:
    """Operations on matrices or signals, of which only the number is padded."""
    rank = len(eqn.params.get("fft_lengths", (0, 0)))
    for atom in (*eqn.invars, *eqn.outvars):
        if any(type(size) is SymbolicSize for size in atom.aval.shape[-rank:]):
            raise PaddingError(f"the padding would be part of what {eqn.primitive.name} works on")
    return bind(sizes, eqn, *operands)


def call(sizes: PaddedSizes, eqn: Equation, *operands: Any) -> Any:
    """The equations of the jaxpr that is called."""
    assert isinstance(eqn.primitive, CallLike)
    return sizes.run(eqn.params[eqn.primitive.called], operands)


def touches_sizes(eqn: Equation) -> bool:
    """Whether an operand or a result is padded."""
    return any(is_padded(a.aval) for a in (*eqn.invars, *eqn.outvars))
