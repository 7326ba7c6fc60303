"""Rows of nn: activations, softmax and its relatives, one_hot, standardize."""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from tests.rows.row import FLOATS, Arg, Row
from xlamini import nn

LOOSE = {"bfloat16": 5e-2, "float16": 1e-2, "float32": 1e-5}
WIDE = ("float32", "float64")


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def erf(x: Any) -> Any:
    return np.vectorize(math.erf, otypes=[x.dtype])(x)


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


ACTIVATIONS: dict[str, Any] = {
    "relu": lambda x: np.maximum(x, 0),
    "relu6": lambda x: np.clip(x, 0, 6),
    "hard_tanh": lambda x: np.clip(x, -1, 1),
    "hard_sigmoid": lambda x: np.clip(x + 3, 0, 6) / 6,
    "hard_silu": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "hard_swish": lambda x: x * np.clip(x + 3, 0, 6) / 6,
    "sigmoid": sigmoid,
    "silu": lambda x: x * sigmoid(x),
    "swish": lambda x: x * sigmoid(x),
    "softplus": lambda x: np.log1p(np.exp(x)),
    "log_sigmoid": lambda x: -np.log1p(np.exp(-x)),
    "soft_sign": lambda x: x / (1 + abs(x)),
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "gelu": lambda x: x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi).astype(x.dtype) * (x + 0.044715 * x**3))),
    "elu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "celu": lambda x: np.where(x > 0, x, np.expm1(x)),
    "selu": lambda x: 1.0507009873554805 * np.where(x > 0, x, 1.6732632423543772 * np.expm1(x)),
    "leaky_relu": lambda x: np.where(x > 0, x, x * 0.01),
    "squareplus": lambda x: (x + np.sqrt(x * x + 4)) / 2,
    "sparse_plus": lambda x: np.where(x <= -1, 0, np.where(x >= 1, x, (x + 1) ** 2 / 4)),
    "sparse_sigmoid": lambda x: np.clip((x + 1) / 2, 0, 1),
    "identity": lambda x: x,
    "tanh": np.tanh,
}
KINKS = ("relu6", "hard_tanh", "hard_sigmoid", "hard_silu", "hard_swish", "sparse_plus", "sparse_sigmoid")
ROWS = [
    *(
        Row(f"nn.{name}", getattr(nn, name), lambda x, f=f: np.asarray(f(x)).astype(x.dtype), dtypes=FLOATS,
            tolerance=LOOSE, samples=[[Arg((2, 3))], [Arg((0,))]], differentiable=name not in KINKS)
        for name, f in ACTIVATIONS.items()
    ),
    Row("nn.gelu: exact", lambda x: nn.gelu(x, False), lambda x: x * (1 + erf(x / np.sqrt(2))) / 2, tolerance=LOOSE,
        dtypes=WIDE),
    Row("nn.glu", nn.glu, lambda x: x[:, :2] * sigmoid(x[:, 2:]), samples=[[Arg((2, 4))]], dtypes=WIDE,
        tolerance=LOOSE),
    Row("nn.log1mexp", nn.log1mexp, lambda x: np.log(-np.expm1(-x)), samples=[[Arg((4,), domain=(0.1, 3))]],
        dtypes=WIDE, tolerance=LOOSE),
    Row("nn.softmax", nn.softmax, softmax, dtypes=FLOATS, tolerance=LOOSE),
    Row("nn.log_softmax", nn.log_softmax, lambda x: np.log(softmax(x)), dtypes=FLOATS, tolerance=LOOSE),
    Row("nn.logsumexp", lambda x: nn.logsumexp(x, 1), lambda x: np.log(np.exp(x).sum(1)), dtypes=WIDE, tolerance=LOOSE),
    Row("nn.logmeanexp", lambda x: nn.logmeanexp(x, 1), lambda x: np.log(np.exp(x).mean(1)), dtypes=WIDE,
        tolerance=LOOSE),
    Row("nn.one_hot", lambda i: nn.one_hot(i, 4), lambda i: np.eye(4, dtype="float32")[i], dtypes=("int32", "int8"),
        samples=[[Arg((2, 3), domain=(0, 3))]], differentiable=False),
    Row("nn.standardize", nn.standardize, lambda x: (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True)
        + 1e-5), dtypes=WIDE, tolerance={"float32": 1e-4}, order=1),
]  # fmt: skip
