"""The softmax of rows, each in one program's registers."""
from __future__ import annotations

import functools
from typing import Any

import numpy as np

from xlamini import lax, numpy as jnp
from xlamini.nn.kernels.flash_tiles import NEVER, wide
from xlamini.nn.kernels.targets import GRID, Hints, for_target, padded_to
from xlamini.staging.trace.shape_struct import ShapeDtypeStruct
from xlamini.transforms.custom.custom_vjp import custom_vjp
from xlamini.transforms.pallas.api import pallas_call
from xlamini.transforms.pallas.specs import BlockSpec


@functools.partial(custom_vjp, nondiff_argnums=(0,))
def softmax_of_rows(walk: str | None, x: Any) -> Any:
    """`exp(x - logsumexp(x))` of each row of a matrix; `walk` is that of `targets.for_target`."""
    return for_target(_forward, walk, x)


def _kept(walk: str | None, x: Any) -> Any:
    y = softmax_of_rows(walk, x)
    return y, y


def _derivative(walk: str | None, y: Any, ct: Any) -> tuple[Any]:
    weights, ct = y.astype(wide(y.dtype)), ct.astype(wide(y.dtype))
    return ((weights * (ct - (weights * ct).sum(1, keepdims=True))).astype(y.dtype),)


softmax_of_rows.defvjp(_kept, _derivative)


def _forward(walk: str, x: Any) -> Any:
    rows, columns = x.shape
    block, width = _block(walk, rows, columns)
    spec = BlockSpec((block, width), lambda i: (i, 0))

    def kernel(of: Any, out: Any) -> None:
        row = of[...].astype(wide(x.dtype))
        if width != columns:
            row = jnp.where(lax.broadcasted_iota(np.int32, row.shape, 1) < columns, row, NEVER)
        powers = jnp.exp(row - row.max(1, keepdims=True))
        out[...] = (powers / powers.sum(1, keepdims=True)).astype(out.dtype)

    call = pallas_call(
        kernel,
        ShapeDtypeStruct(x.shape, x.dtype),
        grid=(-(-rows // block),),
        in_specs=[spec],
        out_specs=spec,
        name="softmax",
        compiler_params=Hints(("parallel",), num_warps=8 if width >= 4096 else 4),
    )
    return call(x)


def _block(walk: str, rows: int, columns: int) -> tuple[int, int]:
    if walk == GRID:
        return min(max(2**18 // columns // 16 * 16, 16), padded_to(rows, 16)), columns
    width = 1 << (columns - 1).bit_length()
    return max(2**12 // width, 1), width
