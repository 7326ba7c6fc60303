"""Products of numbers stored in 4 or 8 bits, with block scales along the contracted axis.

How blocks are scaled: "OCP Microscaling Formats (MX) Specification" 1.0, section 6.3, for mxfp8; for nvfp4 the largest
number of a block is brought to 6, the largest float4_e2m1fn.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from xlamini import lax, numpy as jnp
from xlamini.core import ShapeError, check_user_dtype, finfo
from xlamini.numpy.arguments import as_operand
from xlamini.runtime import Array
from xlamini.transforms.custom.custom_vjp import custom_vjp
from xlamini.typing import ArrayLike, DTypeLike


@dataclass(frozen=True)
class BlockScaleConfig:
    """The storage of one operand: the dtypes of its numbers and of the scales of blocks, and the size of a block.

    `global_scale`, for nvfp4, divides the scales of all blocks. With `infer_only` derivatives are those of the exact
    product.
    """

    mode: str
    block_size: int
    data_type: DTypeLike
    scale_type: DTypeLike
    global_scale: Any = None
    infer_only: bool = False


def get_scaled_dot_general_config(
    mode: Literal["nvfp4", "mxfp8"], global_scale: ArrayLike | None = None
) -> BlockScaleConfig:
    """The configuration of one operand of `scaled_dot_general`; ValueError for an unknown mode.

    >>> get_scaled_dot_general_config("mxfp8").block_size
    32
    """
    if mode == "mxfp8":
        return BlockScaleConfig(mode, 32, jnp.float8_e4m3fn, jnp.float8_e8m0fnu)
    if mode != "nvfp4":
        raise ValueError(f"get_scaled_dot_general_config: mode must be 'nvfp4' or 'mxfp8', got {mode!r}")
    scale = jnp.ones((1,)) if global_scale is None else global_scale
    return BlockScaleConfig(mode, 16, jnp.float4_e2m1fn, jnp.float8_e4m3fn, scale)


def scaled_matmul(
    lhs: ArrayLike,
    rhs: ArrayLike,
    lhs_scales: ArrayLike,
    rhs_scales: ArrayLike,
    preferred_element_type: DTypeLike = np.float32,
) -> Array:
    """`einsum("bmk,bnk->bmn")` of numbers that are multiplied by the scales of their blocks first.

    `lhs` has shape (b, m, k) and `lhs_scales` (b, m, k / block); `rhs` (b, n, k) likewise. Sums are in float32, the
    result in `preferred_element_type`. ShapeError where shapes do not fit.

    >>> a, b, half = jnp.array([[[1, 2, 3]]]), jnp.array([[[4, 5, 6]]]), jnp.array([[[0.5]]])
    >>> scaled_matmul(a, b, half, half)
    Array([[[8.]]], dtype=float32)
    """
    dtype = check_user_dtype(preferred_element_type, "scaled_matmul")
    operands = [as_operand("scaled_matmul", x) for x in (lhs, rhs, lhs_scales, rhs_scales)]
    left, right = _restored("lhs", operands[0], operands[2]), _restored("rhs", operands[1], operands[3])
    if left.shape[::2] != right.shape[::2]:
        raise ShapeError(f"scaled_matmul: lhs {left.shape} and rhs {right.shape} must agree in their axes 0 and 2")
    return jnp.einsum("bmk,bnk->bmn", left, right).astype(dtype)


def scaled_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: Any,
    preferred_element_type: DTypeLike = np.float32,
    configs: Sequence[BlockScaleConfig] | None = None,
    implementation: Literal["cudnn"] | None = None,
) -> Array:
    """`lax.dot_general` of operands that are rounded to few bits as `configs` say: of lhs, rhs, and cotangents.

    Derivatives round the cotangents too, and take rounding itself for the identity. Without `configs` nothing is
    rounded. `implementation` makes no difference. ValueError unless there are three configs.

    >>> configs = [get_scaled_dot_general_config("mxfp8")] * 3
    >>> x = jnp.ones((2, 32))
    >>> scaled_dot_general(x, x, (((1,), (1,)), ((), ())), configs=configs)
    Array([[32., 32.],
           [32., 32.]], dtype=float32)
    """
    lhs, rhs = as_operand("scaled_dot_general", lhs), as_operand("scaled_dot_general", rhs)
    if configs is None:
        return lax.dot_general(lhs, rhs, dimension_numbers, preferred_element_type=preferred_element_type)
    if len(configs) != 3:
        raise ValueError(f"scaled_dot_general: three configs are needed, for lhs, rhs, cotangents; got {len(configs)}")
    (sums, batches) = dimension_numbers
    left, right = (_as_matrices(x, *dims) for x, dims in ((lhs, (sums[0], batches[0])), (rhs, (sums[1], batches[1]))))
    product = _rounded_product(configs, check_user_dtype(preferred_element_type, "scaled_dot_general"))(left, right)
    shape = [lhs.shape[d] for d in batches[0]]
    for x, contracted, batch in ((lhs, sums[0], batches[0]), (rhs, sums[1], batches[1])):
        shape += [n for d, n in enumerate(x.shape) if d not in (*contracted, *batch)]
    return product.reshape(shape)


# --- helpers


def _restored(what: str, x: Any, scales: Any) -> Any:
    """Numbers times the scales of their blocks, in float32."""
    fits = x.ndim == scales.ndim == 3 and x.shape[:2] == scales.shape[:2]
    if not fits or not scales.shape[2] or x.shape[2] % scales.shape[2]:
        raise ShapeError(
            f"scaled_matmul: {what} and {what}_scales must have shapes (b, m, k) and (b, m, k / block), "
            f"got {x.shape} and {scales.shape}"
        )
    blocks = x.astype(np.float32).reshape(*scales.shape, -1) * scales.astype(np.float32)[..., None]
    return blocks.reshape(x.shape)


def _as_matrices(x: Any, contracted: Sequence[int], batch: Sequence[int]) -> Any:
    """The operand with three axes: batch, free, contracted."""
    free = [d for d in range(x.ndim) if d not in (*contracted, *batch)]
    sizes = [math.prod(x.shape[d] for d in dims) for dims in (batch, free, contracted)]
    return x.transpose(*batch, *free, *contracted).reshape(sizes)


def _rounded(x: Any, config: BlockScaleConfig) -> tuple[Any, Any]:
    """Numbers of few bits, and the scales of their blocks; the last axis is filled up with zeros to whole blocks."""
    blocks = jnp.pad(x, [(0, 0), (0, 0), (0, -x.shape[2] % config.block_size)]).astype(np.float32)
    blocks = blocks.reshape(*x.shape[:2], -1, config.block_size)
    largest = abs(blocks).max(-1)
    top = float(finfo(config.data_type).max)
    if config.mode == "mxfp8":
        scales = jnp.exp2(jnp.floor(jnp.log2(largest)) - np.floor(np.log2(top)))
    else:
        scales = largest / top / config.global_scale
    scales = jnp.where(largest > 0, scales, 1.0).astype(config.scale_type)
    shrunk = blocks / scales.astype(np.float32)[..., None]
    return shrunk.clip(-top, top).astype(config.data_type).reshape(*x.shape[:2], -1), scales


def _product(left: Any, right: Any, configs: Sequence[BlockScaleConfig], dtype: Any) -> Any:
    (x, x_scales), (y, y_scales) = (_rounded(each, c) for each, c in zip((left, right), configs, strict=True))
    return scaled_matmul(x, y, x_scales, y_scales, dtype)


def _rounded_product(configs: Sequence[BlockScaleConfig], dtype: Any) -> Any:
    """The product of (b, m, k) and (b, n, k), and its derivative: two more such products."""
    of_left, of_right, of_cotangent = configs

    @custom_vjp
    def product(left: Any, right: Any) -> Any:
        return _product(left, right, (of_left, of_right), dtype)

    def forward(left: Any, right: Any) -> Any:
        return product(left, right), (left, right)

    def backward(residuals: Any, ct: Any) -> Any:
        left, right = residuals
        across = ct.transpose(0, 2, 1)
        if of_cotangent.infer_only:
            return (
                jnp.einsum("bmn,bnk->bmk", ct, right).astype(left.dtype),
                jnp.einsum("bnm,bmk->bnk", across, left).astype(right.dtype),
            )
        return (
            _product(ct, right.transpose(0, 2, 1), (of_cotangent, of_right), left.dtype),
            _product(across, left.transpose(0, 2, 1), (of_cotangent, of_left), right.dtype),
        )

    product.defvjp(forward, backward)
    return product
