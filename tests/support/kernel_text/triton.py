"""The operations of Triton's dialect, `tt`: tensors, pointers into flat arrays, reductions, products."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from statistics import NormalDist
from typing import Any

import numpy as np

from tests.support.kernel_text.arith import ARITH, high_product, is_float, signed, unsigned
from tests.support.kernel_text.machine import KernelTextError, Machine, Op, Rule
from tests.support.kernel_text.math import FLOATS, MATH, each, of_floats
from tests.support.kernel_text.products import product
from tests.support.kernel_text.scf import SCF


def _range(machine: Machine, op: Op) -> np.ndarray:
    return np.arange(op.attributes["start"], op.attributes["end"], dtype=np.int32)


def _spread(machine: Machine, op: Op, x: Any) -> np.ndarray:
    return np.broadcast_to(x, op.kinds[0].shape)


def _reshaped(machine: Machine, op: Op, x: Any) -> np.ndarray:
    return np.reshape(x, op.kinds[0].shape)


def _moved(machine: Machine, op: Op, pointer: Any, offset: Any) -> np.ndarray:
    return np.asarray(pointer + signed(offset) * op.kinds[0].pointee.itemsize)


def _load(machine: Machine, op: Op, *operands: Any) -> np.ndarray:
    (pointers,), mask, other = op.segments(operands)
    return machine.memory.load(
        np.asarray(pointers), op.in_kinds[0].pointee, mask[0] if mask else None, other[0] if other else None
    )


def _store(machine: Machine, op: Op, pointers: Any, values: Any, mask: Any = None) -> None:
    machine.memory.store(np.asarray(pointers), np.asarray(values), mask)


def _reduce(machine: Machine, op: Op, *xs: Any) -> list[np.ndarray]:
    """A tree of halves, as the threads of a GPU add."""
    axis = op.attributes["axis"]
    while (size := xs[0].shape[axis]) > 1:
        halves = [np.split(x, [size // 2, 2 * (size // 2)], axis) for x in xs]
        joined = machine.run(op.regions[0], [h[0] for h in halves] + [h[1] for h in halves])
        xs = [np.concatenate([x, h[2]], axis) for x, h in zip(joined, halves, strict=True)]
    return [np.squeeze(x, axis) for x in xs]


def _scan(machine: Machine, op: Op, *xs: Any) -> list[np.ndarray]:
    axis, backwards = op.attributes["axis"], op.attributes["reverse"]
    steps = [[np.take(x, i, axis) for x in xs] for i in range(xs[0].shape[axis])]
    steps = steps[::-1] if backwards else steps
    for i in range(1, len(steps)):
        steps[i] = machine.run(op.regions[0], [*steps[i - 1], *steps[i]])
    steps = steps[::-1] if backwards else steps
    return [np.stack(column, axis) for column in zip(*steps, strict=True)]


def _dot(machine: Machine, op: Op, x: Any, y: Any, total: Any) -> np.ndarray:
    """With float32 and the precision tf32 (0) the operands lose 13 bits first."""
    shortens = machine.single_pass and x.dtype == np.float32 and op.attributes.get("inputPrecision", 0) == 0
    x, y = (_tf32(v) if shortens else v for v in (x, y))
    return product("...ij,...jk->...ik", x, y, total)


def _tf32(x: np.ndarray) -> np.ndarray:
    return (x.view(np.int32) & ~0x1FFF).view(np.float32)


def _to_float(machine: Machine, op: Op, x: Any) -> np.ndarray:
    if op.attributes.get("rounding") == 0 and op.kinds[0].dtype.itemsize < x.dtype.itemsize:
        raise KernelTextError("tt.fp_to_fp that rounds towards zero is not known")
    return x.astype(op.kinds[0].dtype)


def _extern(machine: Machine, op: Op, *xs: Any) -> np.ndarray:
    """A function of libdevice: `__nv_expf` of float32, `__nv_exp` of float64."""
    name = op.attributes["symbol"].removeprefix("__nv_")
    if name in _LIBDEVICE_OF_INTEGERS:
        found = MATH[f"math.{_LIBDEVICE_OF_INTEGERS[name]}"](machine, replace(op, kinds=op.in_kinds), *xs)
        return found.astype(op.kinds[0].dtype)
    plain = name if name in _LIBDEVICE else name.removesuffix("f")
    compute = _LIBDEVICE.get(plain)
    if compute is None:
        raise KernelTextError(f"the function {op.attributes['symbol']} is not known")
    wanted = np.float64 if name == plain else np.float32
    if any(x.dtype != wanted for x in xs if is_float(x.dtype)):
        raise KernelTextError(f"{op.attributes['symbol']} takes {np.dtype(wanted)}, got {xs[0].dtype}")
    return of_floats(compute)(machine, op, *xs)


_LIBDEVICE: dict[str, Callable[..., Any]] = {
    **{name: compute for name, compute in FLOATS.items() if name not in ("absf", "powf", "clampf")},
    "pow": np.power, "fabs": np.abs, "rint": np.rint, "nearbyint": np.rint, "fmod": np.fmod, "remainder": np.remainder,
    "erfinv": each(lambda x: NormalDist().inv_cdf((x + 1) / 2) / 2**0.5), "lgamma": each(math.lgamma),
    "fmin": np.fmin, "fmax": np.fmax, "powi": np.power, "hypot": np.hypot,
}  # fmt: skip

_LIBDEVICE_OF_INTEGERS = {"popc": "ctpop", "popcll": "ctpop", "clz": "ctlz", "clzll": "ctlz"}

_ATOMIC: dict[int, Callable[[Any, Any], Any]] = {
    1: np.bitwise_and, 2: np.bitwise_or, 3: np.bitwise_xor, 4: np.add, 5: np.add, 6: np.maximum, 7: np.minimum,
    8: lambda x, y: np.where(unsigned(x) > unsigned(y), x, y),
    9: lambda x, y: np.where(unsigned(x) < unsigned(y), x, y),
    10: lambda x, y: y,
}  # fmt: skip


def _atomic(machine: Machine, op: Op, pointers: Any, values: Any, mask: Any = None) -> np.ndarray:
    compute, values = _ATOMIC[op.attributes["atomic_rmw_op"]], np.asarray(values)
    return machine.memory.update(np.asarray(pointers), values, mask, compute)


def _atomic_swap(machine: Machine, op: Op, pointers: Any, expected: Any, new: Any) -> np.ndarray:
    pair = np.dtype([("expected", new.dtype), ("new", new.dtype)])
    pairs = np.empty(np.shape(new), pair)
    pairs["expected"], pairs["new"] = expected, new
    before = np.empty(np.shape(new), new.dtype)
    for place in np.ndindex(pairs.shape):
        wanted = pairs[place]
        before[place] = machine.memory.update(
            np.asarray(pointers)[place], np.asarray(wanted["new"]), None,
            lambda old, value, wanted=wanted: np.where(old == wanted["expected"], value, old).astype(new.dtype),
        )  # fmt: skip
    return before


def _clamp(machine: Machine, op: Op, x: Any, low: Any, high: Any) -> np.ndarray:
    inside = np.fmin(np.fmax(x, low), high)
    return np.where(np.isnan(x), x, inside) if op.attributes["propagateNan"] else inside


TRITON: dict[str, Rule] = {
    **ARITH, **MATH, **SCF,
    "tt.get_program_id": lambda machine, op: np.int32(machine.ids[op.attributes["axis"]]),
    "tt.get_num_programs": lambda machine, op: np.int32(machine.grid[op.attributes["axis"]]),
    "tt.make_range": _range, "tt.splat": _spread, "tt.broadcast": _spread,
    "tt.expand_dims": _reshaped, "tt.reshape": _reshaped, "tt.unsplat": _reshaped,
    "tt.trans": lambda machine, op, x: np.transpose(x, op.attributes["order"]),
    "tt.addptr": _moved, "tt.load": _load, "tt.store": _store,
    "tt.reduce": _reduce, "tt.scan": _scan, "tt.dot": _dot,
    "tt.fp_to_fp": _to_float, "tt.bitcast": ARITH["arith.bitcast"],
    "tt.extern_elementwise": _extern, "tt.atomic_rmw": _atomic, "tt.atomic_cas": _atomic_swap,
    "tt.join": lambda machine, op, x, y: np.stack([x, y], -1),
    "tt.split": lambda machine, op, x: [x[..., 0], x[..., 1]],
    "tt.cat": lambda machine, op, x, y: np.concatenate([x, y], 0),
    "tt.gather": lambda machine, op, x, at: np.take_along_axis(x, signed(at), op.attributes["axis"]),
    "tt.precise_divf": ARITH["arith.divf"], "tt.precise_sqrt": MATH["math.sqrt"], "tt.clampf": _clamp,
    "tt.mulhiui": high_product,
    "tt.int_to_ptr": lambda machine, op, x: x, "tt.ptr_to_int": lambda machine, op, x: x,
    "gpu.barrier": lambda machine, op: machine.memory.barrier(),
    "tt.print": lambda machine, op, *xs: None, "tt.assert": lambda machine, op, *xs: None,
}  # fmt: skip
