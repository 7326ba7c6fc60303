"""Attention and block-scaled products."""

from __future__ import annotations

from typing import Any

from tests.support.error_rows import ones, row
from xlamini import nn
from xlamini.errors import ShapeError

Q, K = ones(2, 3, 4, 5), ones(2, 6, 2, 5)


def attend(q: Any = Q, k: Any = K, v: Any = K, **options: Any) -> Any:
    return nn.dot_product_attention(q, k, v, **options)


ROWS = [
    row("features", lambda: attend(k=ones(2, 6, 2, 4)), ShapeError, "key and value must have", "(2, 6, 2, 4)"),
    row("batch", lambda: attend(k=ones(1, 6, 2, 5), v=ones(1, 6, 2, 5)), ShapeError, "batch and features of the query"),
    row("rank", lambda: attend(q=ones(4, 5)), ShapeError, "must have shape (batch, keys, heads, features)"),
    row(
        "heads", lambda: attend(k=ones(2, 6, 3, 5), v=ones(2, 6, 3, 5)), ShapeError,
        "the 4 query heads must be a multiple of the 3 key heads",
    ),
    row("dtypes", lambda: attend(q=Q.astype("bfloat16")), TypeError, "bfloat16, float32, float32", ".astype"),
    row("bias", lambda: attend(bias=ones(3, 6)), ShapeError, "bias must have four dimensions", "(2, 4, 3, 6)"),
    row("bias heads", lambda: attend(bias=ones(1, 2, 3, 6)), ShapeError, "bias", "got (1, 2, 3, 6)"),
    row("mask", lambda: attend(mask=ones(1, 1, 3, 6)), TypeError, "mask must hold booleans, not float32", "bias"),
    row("lengths", lambda: attend(key_value_seq_lengths=ones(3)), ShapeError, "must have shape (2,)", "got (3,)"),
    row("kind", lambda: attend(implementation="mine"), ValueError, "'cudnn', 'flash' or None, got 'mine'"),
    row("window", lambda: attend(local_window_size=1.5), TypeError, "local_window_size must be an integer, got 1.5"),
    row("mode", lambda: nn.get_scaled_dot_general_config("fp2"), ValueError, "'nvfp4' or 'mxfp8', got 'fp2'"),
    row(
        "scales",
        lambda: nn.scaled_matmul(ones(1, 2, 6), ones(1, 2, 6), ones(1, 2, 4), ones(1, 2, 3)),
        ShapeError,
        "lhs and lhs_scales must have shapes (b, m, k) and (b, m, k / block), got (1, 2, 6) and (1, 2, 4)",
    ),
    row(
        "configs",
        lambda: nn.scaled_dot_general(ones(2, 2), ones(2, 2), (((1,), (1,)), ((), ())), configs=[]),
        ValueError,
        "three configs are needed",
    ),
]
