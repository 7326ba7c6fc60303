"""Normalized rows, scaled and shifted, in one pass: of an array, or of its sum with a residual.

Formulas: Ba et al., "Layer Normalization" (2016); Zhang and Sennrich, "Root Mean Square Layer Normalization" (2019),
which leaves the mean where it is. The derivative computes mean and deviation once more, so that nothing is kept.
"""
from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from xlamini import lax, numpy as jnp
from xlamini.nn.kernels.flash_tiles import wide
from xlamini.nn.kernels.targets import GRID, Hints, for_target, padded_to
from xlamini.numpy.indexing.slices import ds
from xlamini.staging.trace.shape_struct import ShapeDtypeStruct
from xlamini.transforms.control_flow.fori_loop import fori_loop
from xlamini.transforms.custom.custom_vjp import custom_vjp
from xlamini.transforms.pallas.api import pallas_call
from xlamini.transforms.pallas.grid import program_id
from xlamini.transforms.pallas.specs import BlockSpec


@dataclass(frozen=True)
class Norm:
    """Which norm, and how it is computed: `centred` for that of layers; `rows` is the most that a program takes."""

    centred: bool
    eps: float
    rows: int | None = None
    walk: str | None = None


class Rows(NamedTuple):
    """`x` and `residual` have shape (rows, features), `weight` and `bias` (1, features). Each but `x` may be None."""

    x: Any
    residual: Any
    weight: Any
    bias: Any


@functools.partial(custom_vjp, nondiff_argnums=(0,))
def norm(how: Norm, rows: Rows) -> tuple[Any, Any]:
    """The normalized rows of `x + residual`, and that sum (None without a residual), in the dtype of `x`."""
    y, *total = for_target(functools.partial(_forward, how), how.walk, rows)
    return y, total[0] if total else None


def _kept(how: Norm, rows: Rows) -> Any:
    y, total = norm(how, rows)
    return (y, total), (rows.x if total is None else total, rows)


def _derivative(how: Norm, kept: Any, cts: Any) -> tuple[Rows]:
    total, rows = kept
    ct, ct_total = cts
    back = _NormBack(total, ct, ct_total, rows.weight)
    of_x, of_weight, of_bias = for_target(functools.partial(_backward, how), how.walk, back)
    return (
        Rows(
            of_x,
            None if rows.residual is None else of_x.astype(rows.residual.dtype),
            None if rows.weight is None else of_weight.astype(rows.weight.dtype),
            None if rows.bias is None else of_bias.astype(rows.bias.dtype),
        ),
    )


norm.defvjp(_kept, _derivative)


class _NormBack(NamedTuple):
    total: Any
    ct: Any
    ct_total: Any
    weight: Any


@dataclass(frozen=True)
class _Sizes:
    """The sizes of arrays, of a program's block, whose width may be more than the features, and of a step in it."""

    rows: int
    features: int
    width: int
    block: int
    step: int

    @property
    def programs(self) -> int:
        return -(-self.rows // self.block)

    def spec(self) -> BlockSpec:
        """The rows of a program."""
        return BlockSpec((self.block, self.width), lambda i: (i, 0))

    def one(self) -> BlockSpec:
        """A row for all programs."""
        return BlockSpec((1, self.width), lambda i: (0, 0))

    def own(self) -> BlockSpec:
        """A row for each program, of an array (programs, 1, width)."""
        return BlockSpec((None, 1, self.width), lambda i: (i, 0, 0))


# --- forward


def _forward(how: Norm, walk: str, rows: Rows) -> list[Any]:
    sizes = _sizes(how, walk, rows.x)
    sizes = _Sizes(sizes.rows, sizes.features, sizes.width, sizes.step, sizes.step)
    like = ShapeDtypeStruct(rows.x.shape, rows.x.dtype)
    outs = [like] if rows.residual is None else [like, like]

    def kernel(*refs: Any) -> None:
        parts = iter(refs)
        given = Rows(*(None if x is None else next(parts)[...] for x in rows))
        total = _total(given)
        values = [_scaled(_normal(how, sizes, total.astype(wide(total.dtype)))[0], given), total]
        for out, value in zip(parts, values, strict=False):
            out[...] = value.astype(out.dtype)

    name = "layer_norm" if how.centred else "rms_norm"
    specs = [sizes.spec(), sizes.spec(), sizes.one(), sizes.one()]
    arrays = [(x, spec) for x, spec in zip(rows, specs, strict=True) if x is not None]
    return _called(name, kernel, sizes, arrays, outs, [sizes.spec()] * len(outs))


def _total(rows: Rows) -> Any:
    """The sum with the residual, rounded to the dtype of `x`."""
    x, residual, *_ = rows
    return x if residual is None else (x.astype(wide(x.dtype)) + residual.astype(wide(x.dtype))).astype(x.dtype)


def _scaled(normal: Any, rows: Rows) -> Any:
    if rows.weight is not None:
        normal = normal * rows.weight.astype(normal.dtype)
    return normal if rows.bias is None else normal + rows.bias.astype(normal.dtype)


def _normal(how: Norm, sizes: _Sizes, x: Any) -> tuple[Any, Any]:
    """The normalized rows, and one over the deviation of each."""
    x = _within(sizes, x)
    if how.centred:
        x = _within(sizes, x - _mean(sizes, x))
    scale = lax.rsqrt(_mean(sizes, x * x) + how.eps)
    return x * scale, scale


def _mean(sizes: _Sizes, x: Any) -> Any:
    return x.sum(1, keepdims=True) * (1 / sizes.features)


def _within(sizes: _Sizes, x: Any) -> Any:
    """The values with zeros where the block reaches beyond the features."""
    if sizes.width == sizes.features:
        return x
    return jnp.where(lax.broadcasted_iota(np.int32, x.shape, 1) < sizes.features, x, 0)


# --- backward


def _backward(how: Norm, walk: str, back: _NormBack) -> list[Any]:
    sizes = _sizes(how, walk, back.total)
    dtype = wide(back.total.dtype)
    own = ShapeDtypeStruct((sizes.programs, 1, sizes.features), dtype)
    outs = [ShapeDtypeStruct(back.total.shape, back.total.dtype), own, own]

    def kernel(*refs: Any) -> None:
        parts = iter(refs)
        given = _NormBack(*(None if x is None else next(parts) for x in back))
        out, *sums = parts
        none = jnp.zeros((1, sizes.width), dtype)

        def turn(i: Any, state: list[Any]) -> list[Any]:
            where = _step(sizes, i)
            slope, of_weight, of_bias = _slopes(how, sizes, given, where)
            out[where] = slope.astype(out.dtype)
            seen = _there(sizes, i)
            return [x + (y if seen is None else jnp.where(seen, y, 0)).sum(0, keepdims=True)
                    for x, y in zip(state, (of_weight, of_bias), strict=True)]  # fmt: skip

        steps = sizes.block // sizes.step
        last = turn(0, [none, none]) if steps == 1 else fori_loop(0, steps, turn, [none, none])
        for ref, value in zip(sums, last, strict=True):
            ref[...] = value

    name = "layer_norm_derivative" if how.centred else "rms_norm_derivative"
    specs = [sizes.spec(), sizes.spec(), sizes.spec(), sizes.one()]
    arrays = [(x, spec) for x, spec in zip(back, specs, strict=True) if x is not None]
    of_x, *sums = _called(name, kernel, sizes, arrays, outs, [sizes.spec(), sizes.own(), sizes.own()])
    return [of_x, *(x.sum(0) for x in sums)]


def _slopes(how: Norm, sizes: _Sizes, back: _NormBack, where: Any) -> tuple[Any, Any, Any]:
    """The cotangents of a step's rows, and what each row adds to those of the weight and of the bias."""
    x, ct = (_within(sizes, ref[where].astype(wide(ref.dtype))) for ref in (back.total, back.ct))
    normal, scale = _normal(how, sizes, x)
    slope = ct if back.weight is None else ct * _within(sizes, back.weight[...].astype(ct.dtype))
    rest = slope - normal * _mean(sizes, slope * normal)
    if how.centred:
        rest = rest - _mean(sizes, slope)
    of_x = rest * scale
    return of_x if back.ct_total is None else of_x + back.ct_total[where].astype(ct.dtype), ct * normal, ct


def _step(sizes: _Sizes, i: Any) -> Any:
    return ... if sizes.step == sizes.block else (ds(i * sizes.step, sizes.step), slice(None))


def _there(sizes: _Sizes, i: Any) -> Any:
    """Which rows of a step are rows of the array; None if all."""
    if sizes.rows % sizes.block == 0:
        return None
    first = program_id(0) * sizes.block + i * sizes.step
    return first + lax.broadcasted_iota(np.int32, (sizes.step, sizes.width), 0) < sizes.rows


# --- helpers


def _called(
    name: str, kernel: Any, sizes: _Sizes, arrays: Sequence[Any], outs: Sequence[Any], out_specs: Sequence[BlockSpec]
) -> list[Any]:
    hints = Hints(("parallel",), num_warps=8 if sizes.width >= 4096 else 4, num_stages=1)
    call = pallas_call(
        kernel,
        list(outs),
        grid=(sizes.programs,),
        in_specs=[spec for _, spec in arrays],
        out_specs=list(out_specs),
        name=name,
        compiler_params=hints,
    )
    return list(call(*(x for x, _ in arrays)))


_IN_MEMORY, _IN_REGISTERS, _BLOCKS = 2**18, 2**12, 2**5
"""How many elements of an array a TPU and a GPU take at a time, and how many such steps a program of a GPU has."""


def _sizes(how: Norm, walk: str, x: Any) -> _Sizes:
    """For derivatives; forward, a program has one step."""
    rows, features = x.shape
    if walk == GRID:
        block = min(how.rows or max(_IN_MEMORY // features // 16 * 16, 16), padded_to(rows, 16))
        return _Sizes(rows, features, features, block, block)
    width = 1 << (features - 1).bit_length()
    step = max(min(how.rows or _IN_REGISTERS // width, _IN_REGISTERS // width), 1)
    step = 1 << (step.bit_length() - 1)
    return _Sizes(rows, features, width, step * min(_BLOCKS, 1 << (-(-rows // step) - 1).bit_length()), step)
