"""Rows of lax's products: dot, dot_general, batch_matmul, ragged_dot, scaled_dot; and of argmax and argmin."""
from __future__ import annotations

from typing import Any

import numpy as np

from tests.rows.row import COMPLEXES, FLOATS, INTS, Arg, Row
from xlamini import lax

ALL = FLOATS + INTS + COMPLEXES
WIDE = ("float32", "float64")
ROUGH = {"bfloat16": 6e-2, "float16": 1e-2, "float32": 1e-5}
SIZES = np.array([1, 0, 2], np.int32)
MANY = np.array([30, 0, 64, 1, 100, 0, 50, 2], np.int32)
"""With ten rows left over: so many rows, on a TPU and a GPU, are multiplied by a kernel."""
CONTRACTED = lax.RaggedDotDimensionNumbers((([1], [0]), ([], [])), [1], [])


def spaced(rng: np.random.Generator, dtype: np.dtype) -> np.ndarray:
    """Numbers without ties."""
    return rng.permutation(12).reshape(3, 4)


def grouped(x: np.ndarray, y: np.ndarray, sizes: np.ndarray = SIZES) -> np.ndarray:
    """Row by row, each with the matrix of its group; rows that are left over are zero."""
    out = np.zeros((x.shape[0], y.shape[2]), x.dtype)
    for row, group in enumerate(np.repeat(np.arange(len(sizes)), sizes)):
        out[row] = x[row] @ y[group]
    return out


def contracted(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """A product for each group of the summed dimension."""
    ends = np.cumsum(SIZES)
    return np.stack([x[:, e - n : e] @ y[e - n : e] for e, n in zip(ends, SIZES, strict=True)])


def scaled(x: np.ndarray, y: np.ndarray, s: np.ndarray, t: np.ndarray) -> np.ndarray:
    return (x * np.repeat(s, 2, 1)) @ (y * np.repeat(t, 4, 0))


def with_precision(name: str, precision: Any, tolerance: float) -> Row:
    return Row(
        f"dot: {name}",
        lambda x, y: lax.dot(x, y, precision=precision),
        np.matmul,
        samples=[[Arg((2, 3)), Arg((3, 4))], [Arg((3,)), Arg((3,))]],
        dtypes=("float32",),
        differentiable=False,
        tolerance={"float32": tolerance},
    )


ROWS = [
    Row("dot", lax.dot, np.matmul, [[Arg((2, 3)), Arg((3, 4))], [Arg((3,)), Arg((3,))]], ALL, tolerance=ROUGH),
    Row(
        "dot_general",
        lambda x, y: lax.dot_general(x, y, (((1,), (2,)), ((0,), (1,)))),
        lambda x, y: np.einsum("bkm,nbk->bmn", x, y),
        samples=[[Arg((2, 3, 4)), Arg((5, 2, 3))]],
        dtypes=ALL,
        tolerance=ROUGH,
    ),
    Row(
        "dot_general: preferred_element_type",
        lambda x, y: lax.dot_general(x, y, (((1,), (0,)), ((), ())), preferred_element_type="float32"),
        lambda x, y: x.astype("float32") @ y.astype("float32"),
        samples=[[Arg((2, 3)), Arg((3, 2))]],
        dtypes=("float32", "bfloat16", "float16", "int8", "uint8"),
        differentiable=False,
        tolerance={"float32": 1e-5},
    ),
    Row(
        "batch_matmul",
        lax.batch_matmul,
        np.matmul,
        samples=[[Arg((2, 3, 4)), Arg((2, 4, 2))]],
        dtypes=ALL,
        tolerance=ROUGH,
        order=1,
    ),
    with_precision("highest", "highest", 1e-5),
    with_precision("BF16_BF16_F32", lax.DotAlgorithmPreset.BF16_BF16_F32, 0.1),
    with_precision("TF32_TF32_F32", lax.DotAlgorithmPreset.TF32_TF32_F32, 0.02),
    with_precision("BF16_BF16_F32_X6", "BF16_BF16_F32_X6", 1e-5),
    with_precision("F16_F16_F16", "F16_F16_F16", 0.05),
    with_precision("F64_F64_F64", "F64_F64_F64", 1e-5),
    with_precision("a DotAlgorithm", lax.DotAlgorithm("float16", "bfloat16", "float32"), 0.1),
    Row(
        "ragged_dot",
        lambda x, y: lax.ragged_dot(x, y, SIZES),
        grouped,
        samples=[[Arg((4, 2)), Arg((3, 2, 2))]],
        dtypes=(*FLOATS, "int32"),
        tolerance=ROUGH,
        order=1,
    ),
    Row(
        "ragged_dot of many rows",
        lambda x, y: lax.ragged_dot(x, y, MANY),
        lambda x, y: grouped(x, y, MANY),
        samples=[[Arg((257, 1)), Arg((8, 1, 2))]],
        dtypes=FLOATS,
        tolerance=ROUGH,
        order=1,
    ),
    Row(
        "ragged_dot_general",
        lambda x, y: lax.ragged_dot_general(x, y, SIZES, CONTRACTED),
        contracted,
        samples=[[Arg((2, 4)), Arg((4, 2))]],
        dtypes=(*FLOATS, "int32"),
        tolerance=ROUGH,
        order=1,
    ),
    Row(
        "scaled_dot",
        lambda x, y, s, t: lax.scaled_dot(x, y, lhs_scale=s, rhs_scale=t, preferred_element_type="float32"),
        lambda *arguments: scaled(*(v.astype("float32") for v in arguments)),
        samples=[[Arg((2, 4)), Arg((4, 3)), Arg((2, 2), (1, 4)), Arg((1, 3), (1, 4))]],
        dtypes=("float32", "bfloat16", "int8"),
        differentiable=False,
        tolerance={"float32": 0.2},
    ),
    *(
        Row(
            name,
            lambda x, name=name: getattr(lax, name)(x, 1, "int32"),
            lambda x, name=name: getattr(np, name)(x, 1).astype("int32"),
            samples=[[Arg(values=spaced)]],
            dtypes=FLOATS + INTS,
            differentiable=False,
        )
        for name in ("argmax", "argmin")
    ),
    Row(
        "rng_bit_generator",
        lambda x: lax.rng_bit_generator(x, (2,), algorithm=lax.RandomAlgorithm.RNG_THREE_FRY)[1] * 0,
        lambda x: np.zeros(2, "uint32"),
        samples=[[Arg((4,), (0, 99), "uint32")]],
        dtypes=("uint32",),
        differentiable=False,
        batched=False,
    ),
]
