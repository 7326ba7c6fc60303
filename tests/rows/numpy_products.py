"""Rows of numpy's products: dot and its relatives, einsum; of its ufuncs' methods; and of segment sums."""
from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

import xlamini.numpy as jnp
from tests.rows.reductions import LOOSE
from tests.rows.row import FLOATS, Arg, Row
from xlamini import ops

DTYPES = ("float32", "float64", "complex64", "complex128", "int32", "bfloat16")
IDS = np.array([0, 2, 0, 1])


def product(name: str, op: Any, reference: Any, *shapes: tuple[int, ...]) -> Row:
    return Row(
        f"numpy.{name}",
        op,
        lambda x, y: np.asarray(reference(x, y)).astype(x.dtype),
        samples=[[Arg(s, domain=(-2, 2)) for s in shapes]],
        dtypes=DTYPES,
        order=1,
        tolerance=LOOSE,
    )


PRODUCTS = [
    product("dot", jnp.dot, np.dot, (2, 3), (3, 4)),
    product("dot: three dimensions", jnp.dot, np.dot, (2, 2, 3), (2, 3, 2)),
    product("matmul", jnp.matmul, np.matmul, (2, 3), (3, 4)),
    product("matmul: batched", jnp.matmul, np.matmul, (2, 1, 2, 3), (2, 3, 2)),
    product("matvec", jnp.matvec, lambda x, y: x @ y, (2, 3), (3,)),
    product("vecmat", jnp.vecmat, lambda x, y: x.conj() @ y, (2,), (2, 3)),
    product("vecdot", jnp.vecdot, lambda x, y: (x.conj() * y).sum(-1), (2, 3), (2, 3)),
    product("vdot", jnp.vdot, np.vdot, (2, 3), (2, 3)),
    product("inner", jnp.inner, np.inner, (2, 3), (4, 3)),
    product("outer", jnp.outer, np.outer, (2, 2), (3,)),
    product("kron", jnp.kron, np.kron, (2, 2), (3, 1)),
    product("tensordot", jnp.tensordot, np.tensordot, (2, 3, 2), (3, 2, 2)),
    product("tensordot: 0", lambda x, y: jnp.tensordot(x, y, 0), lambda x, y: np.tensordot(x, y, 0), (2,), (3,)),
    *(
        product(f"einsum: {s}", partial(jnp.einsum, s), partial(np.einsum, s), *shapes)
        for s, shapes in {
            "ij,jk->ki": ((2, 3), (3, 2)),
            "ii,ij->j": ((3, 3), (3, 2)),
            "...i,i...->...": ((2, 3), (3, 2)),
            "ij,kl->": ((2, 2), (2, 2)),
            "bij,bj->bi": ((2, 3, 2), (2, 2)),
            "iij,jk->ik": ((2, 2, 3), (3, 2)),
        }.items()
    ),
]


def method(name: str, op: Any, reference: Any, **options: Any) -> Row:
    return Row(f"numpy.{name}", op, reference, tolerance=LOOSE, **options)


PLACES = np.array([0, 2, 1])
MATRIX = [[Arg((3, 4), domain=(0.5, 2))]]
METHODS = [
    method("add: reduce", jnp.add.reduce, np.add.reduce, samples=MATRIX, dtypes=("float32", "float64")),
    method("subtract: reduce", jnp.subtract.reduce, np.subtract.reduce, samples=MATRIX, dtypes=("float32", "float64")),
    method("multiply: accumulate", jnp.multiply.accumulate, np.multiply.accumulate, samples=MATRIX, order=1,
           dtypes=("float32", "float64")),
    method("subtract: accumulate", jnp.subtract.accumulate, np.subtract.accumulate, samples=MATRIX, order=1,
           dtypes=("float32", "float64")),
    method("logaddexp: reduce", jnp.logaddexp.reduce, np.logaddexp.reduce, samples=MATRIX, order=1,
           dtypes=("float32", "float64")),
    method("add: reduceat", lambda x: jnp.add.reduceat(x, PLACES), lambda x: np.add.reduceat(x, PLACES), samples=MATRIX,
           order=1, dtypes=("float32", "float64", "int32")),
    method("maximum: outer", jnp.maximum.outer, np.maximum.outer, samples=[[Arg((2,)), Arg((3,))]], dtypes=FLOATS),
]  # fmt: skip


def segments(name: str, ufunc: Any, start: float) -> Row:
    def reference(x: Any) -> Any:
        out = np.full((3, *x.shape[1:]), start, x.dtype)
        ufunc.at(out, IDS, x)
        return out

    return Row(f"ops.{name}", lambda x: getattr(ops, name)(x, IDS, 3), reference, samples=[[Arg((4, 2))], [Arg((4,))]],
               dtypes=("float32", "float64"), differentiable=name != "segment_prod",
               order=1, tolerance=LOOSE)  # fmt: skip


SEGMENTS = [
    segments("segment_sum", np.add, 0),
    segments("segment_prod", np.multiply, 1),
    segments("segment_max", np.maximum, -np.inf),
    segments("segment_min", np.minimum, np.inf),
]
ROWS = [*PRODUCTS, *METHODS, *SEGMENTS]
