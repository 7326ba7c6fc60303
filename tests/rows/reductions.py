"""Rows of what runs along axes: reductions, running results, sorting, places of extrema, dot_general; numpy's too."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import xlamini.numpy as jnp
from tests.rows.row import BOOLS, COMPLEXES, FLOATS, HALVES, INTS, Arg, Array, Row, random_array
from xlamini import lax

NUMBERS = FLOATS + INTS + COMPLEXES
REALS = FLOATS + INTS + BOOLS
WIDE_FLOATS = ("float32", "float64")
LOOSE = {"bfloat16": 5e-2, "float16": 5e-3, "float32": 2e-5, "complex64": 2e-5}


def distinct(*shape: int) -> Arg:
    """An array without equal elements, so that extrema and order have derivatives."""

    def values(rng: np.random.Generator, dtype: np.dtype) -> Array:
        size = int(np.prod(shape))
        return (rng.permutation(size).reshape(shape) - size // 3).astype(dtype)

    return Arg(shape, values=values)


def with_zeros(*shape: int) -> Arg:
    """Small numbers of which some are zero."""

    def values(rng: np.random.Generator, dtype: np.dtype) -> Array:
        return random_array(shape, (0, 2), dtype, rng) * rng.integers(0, 4, shape).astype(bool)

    return Arg(shape, values=values)


def own_dtype(reduce: Callable[..., Any]) -> Callable[..., Any]:
    """A NumPy reduction that stays in the dtype of its operand."""
    return lambda x: np.asarray(reduce(x)).astype(x.dtype)


def last_axis(operation: Any) -> Any:
    return lambda x: operation(x, (x.ndim - 1,))


SUMS = [
    Row(
        "reduce_sum",
        lambda x: lax.reduce_sum(x, (1,)),
        own_dtype(lambda x: x.sum(1)),
        samples=[[Arg((2, 5))], [Arg((3, 0))], [Arg((2, 3, 4))]],
        dtypes=NUMBERS,
        linear=True,
        tolerance=LOOSE,
    ),
    Row(
        "reduce_prod",
        lambda x: lax.reduce_prod(x, (0, 1)),
        own_dtype(lambda x: x.prod((0, 1))),
        samples=[[with_zeros(2, 3)], [Arg((5, 1), domain=(-2, 2))], [Arg((3, 0))], [with_zeros(7, 2)]],
        dtypes=NUMBERS,
        tolerance=LOOSE,
    ),
]
EXTREMA = [
    Row(
        name,
        last_axis(operation),
        last_axis(reference),
        samples=[[distinct(3, 4)], [distinct(5)], [distinct(2, 3, 1)]],
        dtypes=REALS,
    )
    for name, operation, reference in (("reduce_max", lax.reduce_max, np.max), ("reduce_min", lax.reduce_min, np.min))
]
BITS = [
    Row(
        f"reduce_{name}",
        lambda x, operation=getattr(lax, f"reduce_{name}"): operation(x, (0,)),
        lambda x, reference=getattr(np, f"bitwise_{name}"): reference.reduce(x, 0),
        samples=[[Arg((3, 4))], [Arg((0, 2))]],
        dtypes=INTS + BOOLS,
        differentiable=False,
        exact=True,
    )
    for name in ("and", "or", "xor")
]
PLACES = [
    Row(
        f"{name}_{size}",
        lambda x, operation=getattr(lax, name): operation(x, 1, np.int32),
        lambda x, reference=getattr(np, name): reference(x, 1).astype(np.int32),
        samples=[[Arg((3, size), domain=(-3, 3))]],
        dtypes=REALS,
        differentiable=False,
        exact=True,
    )
    for name in ("argmax", "argmin")
    for size in (5, 40)
]


def running(name: str, reference: Callable[..., Any], **options: Any) -> list[Row]:
    """A running result forwards and backwards, short and in blocks."""
    operation = getattr(lax, name)
    return [
        Row(name, lambda x: operation(x, axis=1), own_dtype(lambda x: reference(x, 1)), **options),
        Row(
            f"{name}_reverse",
            lambda x: operation(x, axis=0, reverse=True),
            own_dtype(lambda x: reference(x[::-1], 0)[::-1]),
            **options,
        ),
    ]


SHORT = [[Arg((2, 5), domain=(-2, 2))], [Arg((3, 1))], [Arg((2, 0))], [Arg((1, 4, 2), domain=(-1, 1))]]
RUNNING = [
    *running("cumsum", np.cumsum, samples=SHORT, dtypes=NUMBERS, linear=True, tolerance=LOOSE),
    *running("cumprod", np.cumprod, samples=[[with_zeros(2, 5)], [with_zeros(4, 2)]], dtypes=NUMBERS, tolerance=LOOSE),
    *running("cummax", np.maximum.accumulate, samples=[[distinct(2, 5)], [distinct(4, 3)]], dtypes=FLOATS + INTS),
    *running("cummin", np.minimum.accumulate, samples=[[distinct(2, 5)], [distinct(4, 3)]], dtypes=FLOATS + INTS),
    *running("cumlogsumexp", np.logaddexp.accumulate, samples=SHORT, tolerance=LOOSE),
]


def sorted_pair(x: Array, y: Array) -> tuple[Array, Array]:
    order = np.argsort(x, 0, kind="stable")
    return np.take_along_axis(x, order, 0), np.take_along_axis(y, order, 0)


SORTING = [
    Row(
        "sort",
        lambda x: lax.sort(x, dimension=1),
        lambda x: np.sort(x, 1),
        samples=[[distinct(3, 5)], [distinct(2, 50)], [distinct(2, 3, 2)], [Arg((3, 0))]],
        dtypes=NUMBERS + BOOLS,
        exact=True,
    ),
    Row(
        "sort_key_val",
        lambda x, y: tuple(lax.sort_key_val(x, y, 0)),
        sorted_pair,
        samples=[[distinct(6, 2), Arg((6, 2))], [distinct(40, 1), Arg((40, 1))]],
        dtypes=FLOATS + INTS,
        exact=True,
    ),
    Row(
        "top_k",
        lambda x: lax.top_k(x, 2)[0],
        lambda x: -np.sort(-x.astype(np.float64), -1)[..., :2].astype(x.dtype),
        samples=[[distinct(3, 5)], [distinct(6)]],
        dtypes=(*WIDE_FLOATS, "int32"),
        exact=True,
    ),
]


def product(name: str, numbers: Any, subscripts: str, *shapes: tuple[int, ...], dtypes: Any = NUMBERS) -> Row:
    return Row(
        f"dot_general_{name}",
        lambda x, y: lax.dot_general(x, y, numbers),
        lambda x, y: np.einsum(subscripts, x, y).astype(x.dtype),
        samples=[[Arg(s, domain=(-2, 2)) for s in shapes]],
        dtypes=dtypes,
        tolerance=LOOSE,
    )


PRODUCTS = [
    product("matrices", (((1,), (0,)), ((), ())), "ij,jk->ik", (2, 3), (3, 4)),
    product("transposed", (((0,), (1,)), ((), ())), "ji,kj->ik", (3, 2), (4, 3)),
    product("batch", (((2,), (0,)), ((0,), (1,))), "bij,jbk->bik", (2, 3, 4), (4, 2, 5), dtypes=WIDE_FLOATS),
    product(
        "several", (((1, 3), (3, 0)), ((0,), (1,))), "abcd,daeb->ace", (2, 5, 3, 4), (4, 2, 2, 5), dtypes=WIDE_FLOATS
    ),
    product("outer", (((), ()), ((), ())), "i,jk->ijk", (2,), (3, 2), dtypes=WIDE_FLOATS),
    product("elementwise", (((), ()), ((0, 1), (1, 0))), "ij,ji->ij", (2, 3), (3, 2), dtypes=WIDE_FLOATS),
    product("nothing", (((1,), (0,)), ((), ())), "ij,jk->ik", (2, 0), (0, 3), dtypes=WIDE_FLOATS),
]


def face(name: str, op: Callable[..., Any], reference: Callable[..., Any], *args: Arg, **options: Any) -> Row:
    dtypes = options.pop("dtypes", WIDE_FLOATS)
    return Row(f"jnp_{name}", op, reference, samples=[list(args)], dtypes=dtypes, tolerance=LOOSE, **options)


MATRIX, STACK = Arg((3, 4), domain=(-2, 2)), Arg((2, 3, 4), domain=(-2, 2))
FACES = [
    face("sum", lambda x: jnp.sum(x, axis=(0, -1)), lambda x: x.sum((0, -1)), STACK, dtypes=HALVES + WIDE_FLOATS),
    face("prod", lambda x: jnp.prod(x, axis=1, keepdims=True), lambda x: x.prod(1, keepdims=True), with_zeros(3, 4)),
    face("mean", lambda x: jnp.mean(x, axis=1), lambda x: x.mean(1), MATRIX, dtypes=FLOATS + COMPLEXES),
    face("var", lambda x: jnp.var(x, axis=0, ddof=1), lambda x: x.var(0, ddof=1), MATRIX, dtypes=FLOATS),
    face("std", jnp.std, np.std, MATRIX),
    face("var_complex", jnp.var, np.var, MATRIX, dtypes=COMPLEXES, differentiable=False),
    face("max", lambda x: jnp.max(x, axis=-1), lambda x: x.max(-1), distinct(3, 4)),
    face("ptp", lambda x: jnp.ptp(x, axis=0), lambda x: np.ptp(x, 0), distinct(3, 4)),
    face("median", lambda x: jnp.median(x, axis=1), lambda x: np.median(x, 1).astype(x.dtype), distinct(3, 4)),
    face("average", lambda x, w: jnp.average(x, 0, w), lambda x, w: np.average(x, 0, w), MATRIX, Arg((3,), (1, 2))),
    face("cumprod", lambda x: jnp.cumprod(x, axis=0), lambda x: x.cumprod(0), with_zeros(4, 2)),
    face(
        "argsort",
        lambda x: jnp.argsort(x, axis=0),
        lambda x: np.argsort(x, 0, kind="stable"),
        MATRIX,
        differentiable=False,
    ),
    face("matmul", jnp.matmul, np.matmul, STACK, Arg((4, 2)), dtypes=(*WIDE_FLOATS, "complex64")),
    face("matmul_broadcast", jnp.matmul, np.matmul, Arg((1, 2, 3)), Arg((4, 3, 2))),
    face("dot", jnp.dot, np.dot, MATRIX, Arg((4,))),
    face("inner", jnp.inner, np.inner, MATRIX, Arg((2, 4))),
    face("outer", jnp.outer, np.outer, Arg((2,)), Arg((3,))),
    face("vdot", jnp.vdot, np.vdot, MATRIX, MATRIX, dtypes=(*WIDE_FLOATS, *COMPLEXES)),
    face("tensordot", lambda x, y: jnp.tensordot(x, y, 2), lambda x, y: np.tensordot(x, y, 2), STACK, Arg((3, 4, 2))),
    face("kron", jnp.kron, np.kron, Arg((2, 3)), Arg((3,))),
]

ROWS = [*SUMS, *EXTREMA, *BITS, *PLACES, *RUNNING, *SORTING, *PRODUCTS, *FACES]
