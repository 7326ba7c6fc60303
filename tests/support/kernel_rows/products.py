"""Kernels that multiply matrices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import ml_dtypes
import numpy as np

from tests.support.kernel_rows.row import Row, floats, like, of_whole_arrays
from xlamini import lax

BFLOAT16 = ml_dtypes.bfloat16


def product(
    name: str,
    x: np.ndarray,
    y: np.ndarray,
    numbers: Any,
    shape: Any,
    dtype: Any = np.float32,
    precision: Any = None,
    **options: Any,
) -> Row:
    """A product by `lax.dot_general`'s dimension numbers; its operands fit into bfloat16."""
    library = lambda x, y: lax.dot_general(x, y, numbers, precision=precision, preferred_element_type=dtype)
    (over_x, over_y), (batch_x, batch_y) = numbers
    xs, ys = list("abcd"[: x.ndim]), list("mnop"[: y.ndim])
    for i, j in zip([*over_x, *batch_x], [*over_y, *batch_y], strict=True):
        ys[j] = xs[i]
    out = [xs[i] for i in batch_x] + [a for i, a in enumerate(xs) if i not in (*over_x, *batch_x)]
    out += [a for i, a in enumerate(ys) if i not in (*over_y, *batch_y)]
    letters = f"{''.join(xs)},{''.join(ys)}->{''.join(out)}"
    wide = np.int64 if np.dtype(dtype).kind == "i" else np.float64
    expected = lambda x, y: np.einsum(letters, x.astype(wide), y.astype(wide)).astype(dtype)
    call = of_whole_arrays([library], [like(shape, dtype)])
    return Row(name, call, [x, y], expected, 1e-2 if np.dtype(dtype).itemsize < 4 else 1e-4, **options)


def eighths(*shape: int, dtype: Any = np.float32, seed: int = 0) -> np.ndarray:
    """Numbers that bfloat16 and tf32 hold."""
    return (np.round(floats(*shape, seed=seed) * 8) / 8).astype(dtype)


def rows() -> Iterator[Row]:
    """All kernels of this file."""
    plain, no_batch = ((1,), (0,)), ((), ())
    for dtype in (np.float32, BFLOAT16, np.float16):
        x, y = eighths(16, 32, dtype=dtype), eighths(32, 128, dtype=dtype, seed=1)
        name = np.dtype(dtype).name
        yield product(f"product {name}", x, y, (plain, no_batch), (16, 128))
        yield product(f"product {name} by rows", x, eighths(128, 32, dtype=dtype), (((1,), (1,)), no_batch), (16, 128))
        yield product(
            f"product {name} by columns", eighths(32, 16, dtype=dtype), y, (((0,), (0,)), no_batch), (16, 128)
        )
        yield product(
            f"product {name} of rows and columns",
            eighths(32, 16, dtype=dtype),
            eighths(128, 32, dtype=dtype),
            (((0,), (1,)), no_batch),
            (16, 128),
        )
    x, y = eighths(16, 32, dtype=BFLOAT16), eighths(32, 128, dtype=BFLOAT16, seed=1)
    yield product("product to bfloat16", x, y, (plain, no_batch), (16, 128), BFLOAT16)
    yield product(
        "exact product", floats(16, 32), floats(32, 128), (plain, no_batch), (16, 128), precision=lax.Precision.HIGHEST
    )
    small = lambda *shape: np.random.default_rng(0).integers(-9, 9, shape).astype(np.int8)
    yield product("product of bytes", small(16, 32), small(32, 128), (plain, no_batch), (16, 128), np.int32)
    batch = (((2,), (1,)), ((0,), (0,)))
    yield product("products", eighths(2, 16, 32), eighths(2, 32, 128), (batch[0], batch[1]), (2, 16, 128))
    yield product("product with a vector", eighths(16, 32), eighths(32), (((1,), (0,)), no_batch), (16,), targets=())
