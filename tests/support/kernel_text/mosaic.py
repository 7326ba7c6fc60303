"""The operations of the dialects `vector`, `memref` and `tpu`, as Mosaic has them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from tests.support.kernel_text.arith import ARITH, is_float, signed
from tests.support.kernel_text.copies import COPIES
from tests.support.kernel_text.kinds import poison
from tests.support.kernel_text.machine import KernelTextError, Machine, Op, Rule
from tests.support.kernel_text.math import MATH, of_floats
from tests.support.kernel_text.products import product
from tests.support.kernel_text.refs import MEMREFS, part
from tests.support.kernel_text.scf import SCF

_KINDS = {
    "add": np.add, "sum": np.add, "mul": np.multiply, "maximumf": np.maximum, "minimumf": np.minimum,
    "maxnumf": np.fmax, "minnumf": np.fmin, "maxsi": np.maximum, "minsi": np.minimum, "max": np.maximum,
    "min": np.minimum, "and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor,
}  # fmt: skip


def _word(text: Any) -> str:
    """The word in `#vector.kind<word>`."""
    return re.search(r"<(\w+)>", str(text)).group(1)  # type: ignore[union-attr]


def _load(machine: Machine, op: Op, ref: np.ndarray, *at: Any) -> np.ndarray:
    return np.array(part(ref, at, op.kinds[0].shape, op.attributes.get("strides")))


def _store(machine: Machine, op: Op, value: Any, ref: np.ndarray, *at: Any) -> None:
    part(ref, at, np.shape(value), op.attributes.get("strides"))[...] = value


def _masked_load(machine: Machine, op: Op, *operands: Any) -> np.ndarray:
    (ref,), at, mask = op.segments(operands)
    found = _load(machine, op, ref, *at)
    return np.where(mask[0], found, poison(found.shape, found.dtype)) if mask else found


def _masked_store(machine: Machine, op: Op, *operands: Any) -> None:
    (value,), (ref,), at, mask = op.segments(operands)
    place = part(ref, at, np.shape(value), op.attributes.get("strides"))
    new = place + value if op.attributes.get("add") else value
    place[...] = np.where(mask[0], new, place).astype(place.dtype) if mask else new


def _spread(machine: Machine, op: Op, x: Any) -> np.ndarray:
    return np.array(np.broadcast_to(x, op.kinds[0].shape))


def _reshaped(machine: Machine, op: Op, x: Any) -> np.ndarray:
    return np.reshape(x, op.kinds[0].shape)


def _transposed(machine: Machine, op: Op, x: Any) -> np.ndarray:
    return np.transpose(x, op.attributes["permutation"])


def _reduced(machine: Machine, op: Op, x: Any, total: Any) -> np.ndarray:
    compute, axes = _KINDS[_word(op.attributes["kind"])], op.attributes.get("reduction_dims", [0])
    for axis in sorted(axes, reverse=True):
        while (size := x.shape[axis]) > 1:
            first, second, rest = np.split(x, [size // 2, 2 * (size // 2)], axis)
            x = np.concatenate([compute(first, second).astype(x.dtype), rest], axis)
        x = np.squeeze(x, axis)
    return compute(total, x).astype(op.kinds[0].dtype)


def _reduction(machine: Machine, op: Op, x: Any, total: Any = None) -> np.ndarray:
    found = _KINDS[_word(op.attributes["kind"])].reduce(x)
    return found if total is None else _KINDS[_word(op.attributes["kind"])](total, found).astype(x.dtype)


def _all_reduced(machine: Machine, op: Op, x: Any) -> np.ndarray:
    found = _KINDS[_word(op.attributes["kind"])].reduce(x, axis=op.attributes["dim"], keepdims=True)
    return np.broadcast_to(found, op.kinds[0].shape)


def _reduced_index(machine: Machine, op: Op, x: Any) -> np.ndarray:
    """The first place of the largest or the smallest element."""
    find = {"arg_max": np.argmax, "arg_min": np.argmin}[_word(op.attributes["kind"])]
    return find(x.astype(np.float64), axis=op.attributes["axis"]).astype(op.kinds[0].dtype)


def _slices(op: Op, sizes: Sequence[int], x: np.ndarray) -> tuple[slice, ...]:
    """The part at offsets; dimensions behind are whole."""
    starts, strides = op.attributes["offsets"], op.attributes["strides"]
    found = [slice(a, a + (n - 1) * s + 1, s) for a, n, s in zip(starts, sizes, strides, strict=True)]
    if any(s.stop > n for s, n in zip(found, x.shape, strict=False)):
        raise KernelTextError(f"a part {found} of a vector of shape {x.shape}")
    return tuple(found)


def _extracted_slice(machine: Machine, op: Op, x: Any) -> np.ndarray:
    return x[_slices(op, op.attributes["sizes"], x)]


def _inserted_slice(machine: Machine, op: Op, x: Any, into: Any) -> np.ndarray:
    out, front = np.array(into), into.ndim - x.ndim
    strides = [1] * front + op.attributes["strides"]
    op = Op(**{**vars(op), "attributes": {**op.attributes, "strides": strides}})
    out[_slices(op, [1] * front + list(x.shape), into)] = x
    return out


def _position(op: Op, dynamic: Sequence[Any]) -> tuple[int, ...]:
    rest = iter(dynamic)
    return tuple(int(next(rest)) if i == -(2**63) else i for i in op.attributes.get("static_position", ()))


def _extracted(machine: Machine, op: Op, x: Any, *at: Any) -> np.ndarray:
    return x[_position(op, at)]


def _inserted(machine: Machine, op: Op, x: Any, into: Any, *at: Any) -> np.ndarray:
    out = np.array(into)
    out[_position(op, at)] = x
    return out


def _matmul(machine: Machine, op: Op, x: Any, y: Any, total: Any) -> np.ndarray:
    """Float32 without a precision goes through the unit as bfloat16."""
    if machine.single_pass and x.dtype == np.float32 and "fp32" not in op.attributes.get("precision", ""):
        x, y = (v.astype("bfloat16") for v in (x, y))
    return product(_letters(op, x.ndim, y.ndim), x, y, total)


def _letters(op: Op, x_rank: int, y_rank: int) -> str:
    """The letters of a product, by its dimension numbers, or by the two flags that say what is transposed."""
    text = op.attributes.get("dimension_numbers")
    if text is None:
        x, y = ("ji" if op.attributes["transpose_lhs"] else "ij"), ("kj" if op.attributes["transpose_rhs"] else "jk")
        return f"{x},{y}->ik"
    groups = [[int(n) for n in re.findall(r"\d+", g)] for g in re.findall(r"\[([^\]]*)\]", text)]
    over_x, over_y, _, _, order, batch_x, batch_y = groups
    xs = list("abcdefgh"[:x_rank])
    ys = list("mnopqrst"[:y_rank])
    for i, j in zip([*over_x, *batch_x], [*over_y, *batch_y], strict=True):
        ys[j] = xs[i]
    out = "".join((xs, ys)[order[i]][order[i + 1]] for i in range(0, len(order), 2))
    return f"{''.join(xs)},{''.join(ys)}->{out}"


def _iota(machine: Machine, op: Op) -> np.ndarray:
    """Numbers along dimensions, of which the last runs fastest."""
    shape, dims = op.kinds[0].shape, op.attributes["dimensions"]
    numbers = np.arange(np.prod([shape[d] for d in dims])).reshape([shape[d] for d in dims])
    spread = np.expand_dims(numbers, [i for i in range(len(shape)) if i not in dims])
    return np.broadcast_to(spread, shape).astype(op.kinds[0].dtype)


def _rotated(machine: Machine, op: Op, x: Any, by: Any) -> np.ndarray:
    """A roll; with a stride each row along another dimension is rolled by that much more."""
    axis, stride, along = (op.attributes.get(k) for k in ("dimension", "stride", "stride_dimension"))
    if stride is None:
        return np.roll(x, int(by), axis)
    rows = [np.roll(np.take(x, [i], along), int(by) + i * stride, axis) for i in range(x.shape[along])]
    return np.concatenate(rows, along)


def _bitcast(machine: Machine, op: Op, x: Any) -> np.ndarray:
    """Elements of other sizes are packed along the dimension before the last one."""
    source, target = x.dtype.itemsize, op.kinds[0].dtype
    if source == target.itemsize:
        return np.ascontiguousarray(x).view(target)
    columns = np.ascontiguousarray(np.swapaxes(x, -1, -2)).view(target)
    return np.ascontiguousarray(np.swapaxes(columns, -1, -2))


def _gathered(machine: Machine, op: Op, x: Any, at: Any) -> np.ndarray:
    dims = op.attributes["dimensions"]
    if len(dims) != 1:
        raise KernelTextError("tpu.dynamic_gather along several dimensions is not known")
    return np.take_along_axis(x, signed(at) % x.shape[dims[0]], dims[0])


def _concatenated(machine: Machine, op: Op, *xs: Any) -> np.ndarray:
    return np.concatenate(xs, op.attributes["dimension"])


def _repeated(machine: Machine, op: Op, x: Any) -> np.ndarray:
    return np.concatenate([x] * op.attributes["times"], op.attributes["dimension"])


def _to_integer(machine: Machine, op: Op, x: Any) -> np.ndarray:
    nearest = "nearest" in str(op.attributes["rounding_mode"])
    name = f"arith.{op.name.removeprefix('tpu.')}"
    return ARITH[name](machine, op, np.rint(x) if nearest else x)


def _mask(machine: Machine, op: Op, *ends: Any) -> np.ndarray:
    shape = op.kinds[0].shape
    lows, highs = ends[: len(shape)], ends[len(shape) :]
    places = np.indices(shape)
    inside = [(places[i] >= int(lows[i])) & (places[i] < int(highs[i])) for i in range(len(shape))]
    return np.logical_and.reduce(inside)


def _whole(machine: Machine, op: Op, x: Any) -> Any:
    return x


MOSAIC: dict[str, Rule] = {
    **ARITH, **MATH, **SCF, **MEMREFS, **COPIES,
    "vector.load": _load, "vector.store": _store, "tpu.vector_load": _masked_load, "tpu.vector_store": _masked_store,
    "tpu.strided_load": _load, "tpu.strided_store": _store,
    "vector.broadcast": _spread, "vector.splat": _spread, "vector.shape_cast": _reshaped, "tpu.reshape": _reshaped,
    "vector.transpose": _transposed, "tpu.transpose": _transposed,
    "vector.multi_reduction": _reduced, "vector.reduction": _reduction,
    "tpu.all_reduce": _all_reduced, "tpu.reduce_index": _reduced_index,
    "vector.extract_strided_slice": _extracted_slice, "vector.insert_strided_slice": _inserted_slice,
    "vector.extract": _extracted, "vector.insert": _inserted,
    "vector.from_elements": lambda machine, op, *xs: np.array(xs).reshape(op.kinds[0].shape),
    "vector.fma": of_floats(lambda x, y, z: x * y + z), "vector.step": _iota,
    "tpu.matmul": _matmul, "tpu.iota": _iota, "tpu.concatenate": _concatenated, "tpu.repeat": _repeated,
    "tpu.dynamic_rotate": _rotated, "tpu.bitcast": _bitcast, "vector.bitcast": ARITH["arith.bitcast"],
    "tpu.dynamic_gather": _gathered, "tpu.create_mask": _mask, "tpu.mask_cast": _whole,
    "tpu.gather": lambda machine, op, x: np.take(x, op.attributes["indices"], op.attributes["dimension"]),
    "tpu.reciprocal": of_floats(lambda x: 1 / x),
    "tpu.extf": ARITH["arith.extf"], "tpu.truncf": ARITH["arith.truncf"],
    "tpu.sitofp": ARITH["arith.sitofp"], "tpu.uitofp": ARITH["arith.uitofp"],
    "tpu.fptosi": _to_integer, "tpu.fptoui": _to_integer,
    "tpu.assume_multiple": _whole, "tpu.assume_layout": _whole, "tpu.relayout": _whole,
    "tpu.iteration_bound": lambda machine, op: np.int32(machine.grid[op.attributes["dim"]]),
    "tpu.device_id": lambda machine, op: np.int32(0), "tpu.core_id": lambda machine, op: np.int32(0),
    "tpu.region": lambda machine, op: machine.run(op.regions[0], []),
    "tpu.trace": lambda machine, op: machine.run(op.regions[0], []),
    "tpu.trace_start": lambda machine, op: None, "tpu.trace_stop": lambda machine, op: None,
    "tpu.trace_value": lambda machine, op, x: None, "tpu.log": lambda machine, op, *xs: None,
    "tpu.delay": lambda machine, op, n: None,
}  # fmt: skip

__all__ = ["MOSAIC", "is_float"]
