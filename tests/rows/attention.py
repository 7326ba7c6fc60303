"""Rows of attention and of block-scaled products."""
from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

from tests.rows.row import HALVES, Arg, Row
from xlamini import nn

FLOATS = (*HALVES, "float32", "float64")
Q, KV = Arg((2, 3, 4, 2), (-1, 1)), Arg((2, 5, 2, 2), (-1, 1))
LOOSE = {"bfloat16": 3e-2, "float16": 4e-3, "float32": 5e-6}
DOT = (((1,), (2,)), ((0,), (0,)))


def attention(q: Any, k: Any, v: Any, bias: Any = 0.0, seen: Any = True) -> Any:
    """Head by head; query heads 0 and 1 share the first key head."""
    k, v = np.repeat(k, 2, 2), np.repeat(v, 2, 2)
    fit = np.einsum("btnh,bsnh->bnts", q, k) / np.sqrt(q.shape[-1]) + bias
    return np.einsum("bnts,bsnh->btnh", scipy.special.softmax(np.where(seen, fit, -np.inf), -1), v).astype(q.dtype)


def causal(q: Any, k: Any, v: Any, bias: Any) -> Any:
    return attention(q, k, v, bias, np.tri(q.shape[1], k.shape[1], dtype=bool))


def blocks(x: Any, y: Any, s: Any, t: Any) -> Any:
    return np.einsum("bmk,bnk->bmn", x * np.repeat(s, 2, 2), y * np.repeat(t, 3, 2))


def by_config(x: Any, y: Any) -> Any:
    configs = [nn.get_scaled_dot_general_config("mxfp8")] * 3
    return nn.scaled_dot_general(x, y, DOT, configs=configs)


ROWS = [
    Row("nn.dot_product_attention", nn.dot_product_attention, attention, [[Q, KV, KV]], FLOATS, tolerance=LOOSE),
    Row(
        "nn.dot_product_attention: causal, with bias",
        lambda q, k, v, b: nn.dot_product_attention(q, k, v, b, is_causal=True),
        causal,
        [[Q, KV, KV, Arg((2, 1, 3, 5))]],
        ("float32", "float64"),
        order=1,
        tolerance=LOOSE,
    ),
    Row(
        "nn.scaled_matmul",
        nn.scaled_matmul,
        blocks,
        [[Arg((1, 2, 6)), Arg((1, 3, 6)), Arg((1, 2, 3)), Arg((1, 3, 2))]],
        ("float32",),
        tolerance={"float32": 1e-5},
    ),
    Row(
        "nn.scaled_dot_general",
        lambda x, y: nn.scaled_dot_general(x, y, DOT),
        lambda x, y: np.einsum("bkm,bnk->bmn", x, y),
        [[Arg((2, 4, 3)), Arg((2, 3, 4))]],
        ("float32",),
        tolerance={"float32": 1e-5},
    ),
    Row(
        "nn.scaled_dot_general: mxfp8",
        by_config,
        lambda x, y: np.einsum("bkm,bnk->bmn", x, y),
        [[Arg((2, 40, 3), (0.5, 1)), Arg((2, 3, 40), (0.5, 1))]],
        ("float32",),
        differentiable=False,
        tolerance={"float32": 0.07},
    ),
]
