"""cudnn_attention: attention by a fused kernel of cuDNN's on an NVIDIA GPU, and the kernel of its derivative.

The kernels keep the products of queries and keys on the chip. XLA knows both as custom calls, whose JSON describes the
graph that cuDNN compiles; the kernel itself is built on the GPU. Arrays have the order of axes batch, place, head,
features; a bias batch, head, query, key.
"""
from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from xlamini.core import Axis, Cost, Dims, Primitive, ShapedArray, Values, aval_of
from xlamini.core.errors import PlatformError
from xlamini.lowering.ffi_attributes import quoted
from xlamini.lowering.ffi_calls import custom_call, row_major_layout
from xlamini.lowering.gpu import is_gpu
from xlamini.primitives.base.batch_ops import with_batch_first
from xlamini.primitives.base.promotion import broadcast_to
from xlamini.primitives.shape.shape import reshape, sum_over

_NO_ROOM, _STATISTICS = np.dtype(np.uint8), np.dtype(np.float32)
_JSON, _PLACES_FIRST = 2, (3, 1, 2, 0)
_ELEMENTS = {"bfloat16": "BF16", "float16": "F16"}


class Fused(NamedTuple):
    """What a kernel computes: the factor of the products, and which keys a query sees.

    `window` is how many keys, its own place included, where it sees only the last ones, else 0. With `has_bias` there
    is a fourth operand; with `has_lengths` two more: how many queries and keys there are in each example.
    """

    scale: float
    causal: bool
    window: int
    has_bias: bool
    has_lengths: bool


class CudnnAttention(Primitive):
    """The weighted means of the values, and with `residual` the logarithms of the softmax's denominators."""

    name = "cudnn_attention"
    multiple_results = True
    lacks: Mapping[str, str] = {"jvp": "nn/cudnn_attention.py gives its derivative as a custom_vjp"}

    def shape_rule(self, q: ShapedArray, *rest: ShapedArray, how: Fused, residual: bool) -> list[ShapedArray]:
        batch, queries, heads, _ = q.shape
        means = ShapedArray(q.shape, q.dtype)
        return [means, ShapedArray((batch, heads, queries), _STATISTICS)] if residual else [means]

    def batch(self, axis: Axis, operands: Values, dims: Dims, **params: Any) -> Any:
        outs = self.bind(*_joined(axis, operands, dims), **params)
        return [_split_axis(axis, out) for out in outs], [0] * len(outs)

    def lower(self, ctx: Any, *operands: Any, how: Fused, residual: bool) -> Any:
        return _fmha(ctx, operands, how, "", {"bmm1": ((3, 3), (2, 2)), "bmm2": ((3, 1), (1, 2))})

    def cost(self, q: ShapedArray, k: ShapedArray, *rest: ShapedArray, how: Fused, residual: bool) -> Cost:
        return super().cost(q, k, *rest, how=how, residual=residual)._replace(flops=4 * q.size * k.shape[1])


class CudnnAttentionBackward(Primitive):
    """The cotangents of queries, keys, values and the bias if there is one.

    Operands are queries, keys, values, the forward kernel's logarithms, the cotangent of its means, the bias if there
    is one, the means, and the lengths if there are any.
    """

    name = "cudnn_attention_backward"
    multiple_results = True
    lacks: Mapping[str, str] = {"jvp": "cuDNN has no second derivative of attention; implementation='xla' has all"}

    def shape_rule(self, *avals: ShapedArray, how: Fused) -> list[ShapedArray]:
        return [ShapedArray(a.shape, a.dtype) for a in (*avals[:3], *(avals[5:6] if how.has_bias else ()))]

    def batch(self, axis: Axis, operands: Values, dims: Dims, *, how: Fused) -> Any:
        outs = [_split_axis(axis, out) for out in self.bind(*_joined(axis, operands, dims), how=how)]
        if how.has_bias and _batches(operands[5], dims[5]) != aval_of(outs[0]).shape[1]:
            shape = aval_of(outs[3]).shape
            outs[3] = reshape(sum_over(outs[3], (1,)), (shape[0], 1, *shape[2:]))
        return outs, [0] * len(outs)

    def lower(self, ctx: Any, *operands: Any, how: Fused) -> Any:
        products = {
            "bmm1_grad_gemm1": ((2, 1), (1, 2)),
            "bmm1_grad_gemm2": ((3, 1), (1, 2)),
            "bmm2_grad_gemm1": ((2, 1), (1, 2)),
            "bmm2_grad_gemm2": ((3, 3), (2, 2)),
        }
        return _fmha(ctx, operands, how, "Backward", products)

    def cost(self, q: ShapedArray, k: ShapedArray, *rest: ShapedArray, how: Fused) -> Cost:
        return super().cost(q, k, *rest, how=how)._replace(flops=10 * q.size * k.shape[1])


cudnn_attention_p: Final = CudnnAttention()
cudnn_attention_backward_p: Final = CudnnAttentionBackward()


# --- batching: the mapped examples are more examples of one batch


def _joined(axis: Axis, operands: Values, dims: Dims) -> list[Any]:
    moved = with_batch_first(operands, dims, axis.size)
    batch = aval_of(moved[0]).shape[1]
    spread = [broadcast_to(x, (axis.size, batch, *aval_of(x).shape[2:])) for x in moved]
    return [reshape(x, (axis.size * batch, *aval_of(x).shape[2:])) for x in spread]


def _split_axis(axis: Axis, x: Any) -> Any:
    count, *rest = aval_of(x).shape
    return reshape(x, (axis.size, count // axis.size, *rest))


def _batches(x: Any, dim: int | None) -> int:
    """The size of the first dimension but the mapped one."""
    return aval_of(x).shape[1 if dim == 0 else 0]


# --- lowering


def _fmha(ctx: Any, operands: Sequence[Any], how: Fused, suffix: str, products: Mapping[str, Any]) -> list[Any]:
    """Call a kernel, which gives arrays of four axes with the heads in front of the places, and work space."""
    if not is_gpu(ctx):
        raise PlatformError(
            f"attention with implementation='cudnn' runs on NVIDIA GPUs, not on {ctx.platform}; pass "
            "implementation=None or 'xla'"
        )
    outs = ctx.avals_out
    images = [a.ndim == 4 and i < 3 for i, a in enumerate(outs)]
    given = [_heads_first(a) if image else a for a, image in zip(outs, images, strict=True)]
    layouts = [_PLACES_FIRST if image else row_major_layout(a.ndim) for a, image in zip(outs, images, strict=True)]
    found = custom_call(
        ctx,
        f"__cudnn$fmha{'ScaleBias' if how.has_bias else ''}Softmax{suffix}",
        operands,
        [ctx.mlir.type(a) for a in (*given, ShapedArray((0,), _NO_ROOM))],
        config=quoted(json.dumps(_config(ctx.avals_in, how, products))),
        operand_layouts=[row_major_layout(a.ndim) for a in ctx.avals_in],
        result_layouts=[*layouts, row_major_layout(1)],
        api_version=_JSON,
    )
    return [
        ctx.op("stablehlo.transpose", x, avals=[a], permutation=[0, 2, 1, 3]) if image else x
        for x, a, image in zip(found[:-1], outs, images, strict=True)
    ]


def _heads_first(aval: ShapedArray) -> ShapedArray:
    batch, places, heads, features = aval.shape
    return ShapedArray((batch, heads, places, features), aval.dtype)


def _config(avals: Sequence[ShapedArray], how: Fused, products: Mapping[str, Any]) -> dict[str, Any]:
    """The message of XLA's for a kernel; numbers of 64 bits are texts in JSON."""
    q, k = avals[:2]
    fmha = {
        "algorithm": {
            "algo_id": "0",
            "math_type": "TENSOR_OP_MATH",
            "tuning_knobs": {"17": "1", "24": "0"},
            "is_cudnn_frontend": True,
            "workspace_size": "0",
        },
        "fmha_scale": how.scale,
        "intermediate_tensor_shape": _shape(q.dtype, (q.shape[0], q.shape[2], q.shape[1], k.shape[1])),
        "is_flash_attention": True,
        "mask_type": _mask(how),
        **{f"{name}_dot_dimension_numbers": _numbers(*each) for name, each in products.items()},
        "dropout_rate": 0.0,
        "seed": 42,
        "sliding_window_length": how.window,
        "max_seg_per_batch": 1,
        "is_paged_attention": False,
    }
    return {"operation_queue_id": "0", "cudnn_fmha_backend_config": fmha}


def _mask(how: Fused) -> str:
    if how.has_lengths:
        return "PADDING_CAUSAL" if how.causal else "PADDING"
    return "CAUSAL" if how.causal else "NO_MASK"


def _shape(dtype: Any, shape: Sequence[int]) -> dict[str, Any]:
    """The shape of the products of queries and keys, which no memory holds."""
    layout = {
        "dim_level_types": [],
        "dim_unique": [],
        "dim_ordered": [],
        "minor_to_major": [str(d) for d in row_major_layout(len(shape))],
        "tiles": [],
        "element_size_in_bits": "0",
        "memory_space": "0",
        "index_primitive_type": "PRIMITIVE_TYPE_INVALID",
        "pointer_primitive_type": "PRIMITIVE_TYPE_INVALID",
        "dynamic_shape_metadata_prefix_bytes": "0",
    }
    return {
        "element_type": _ELEMENTS[np.dtype(dtype).name],
        "dimensions": [str(n) for n in shape],
        "tuple_shapes": [],
        "layout": layout,
        "is_dynamic_dimension": [False] * len(shape),
    }


def _numbers(contracted: tuple[int, int], heads: tuple[int, int]) -> dict[str, Any]:
    """Dimension numbers of a product of a batch of examples and heads."""
    return {
        "lhs_contracting_dimensions": [str(contracted[0])],
        "rhs_contracting_dimensions": [str(contracted[1])],
        "lhs_batch_dimensions": ["0", str(heads[0])],
        "rhs_batch_dimensions": ["0", str(heads[1])],
    }
