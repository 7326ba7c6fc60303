"""Rows of numpy.linalg."""

from __future__ import annotations

from typing import Any

import numpy as np

import xlamini.numpy as jnp
from tests.rows.linalg_direct import KERNELS, LOOSE, definite, dominant
from tests.rows.row import FLOATS, INTS, Arg, Row

NUMBERS = (*KERNELS, "int32")
SQUARE, STACK = [dominant(3, 3)], [dominant(2, 3, 3)]
BIG = [dominant(4, 4)]
WIDE, TALL = [dominant(2, 3)], [dominant(4, 2)]


def row(name: str, op: Any, reference: Any, samples: Any, **options: Any) -> Row:
    options = {"dtypes": KERNELS, "tolerance": LOOSE, "order": 1, **options}
    return Row(f"numpy.linalg.{name}", op, reference, samples=samples, **options)


def like_inputs(reference: Any) -> Any:
    """A NumPy function whose result has the dtype of its operands."""
    return lambda *xs: np.asarray(reference(*xs)).astype(np.result_type(*xs))


def real_norm(**how: Any) -> Any:
    return lambda x: np.asarray(np.linalg.norm(x, **how)).astype(x.real.dtype)


def hermitian(function: Any) -> Any:
    """A function of Hermitian matrices of any matrices, of half of their sum with the conjugate transposed ones."""
    return lambda x: function(x + x.conj().swapaxes(-1, -2))


SOLVING = [
    row(
        "solve", jnp.linalg.solve, like_inputs(np.linalg.solve), [[*SQUARE, Arg((3, 2))], [*SQUARE, Arg((3,))]], order=2
    ),
    row("solve: stack", jnp.linalg.solve, like_inputs(np.linalg.solve), [[*STACK, Arg((3, 1))]]),
    row("solve: sides", jnp.linalg.solve, like_inputs(np.linalg.solve), [[*SQUARE, Arg((2, 3, 1))]]),
    row("inv", jnp.linalg.inv, like_inputs(np.linalg.inv), [SQUARE, STACK], order=2),
    row("pinv", jnp.linalg.pinv, like_inputs(np.linalg.pinv), [TALL, WIDE, STACK]),
    row(
        "pinv: hermitian",
        hermitian(lambda x: jnp.linalg.pinv(x, hermitian=True)),
        hermitian(np.linalg.pinv),
        [SQUARE],
    ),
    row("lstsq", lambda a, b: jnp.linalg.lstsq(a, b)[0], lambda a, b: np.linalg.lstsq(a, b)[0], [[*TALL, Arg((4, 2))]]),
    row(
        "lstsq: residuals",
        lambda a, b: jnp.linalg.lstsq(a, b)[1],
        lambda a, b: np.linalg.lstsq(a, b)[1],
        [[*TALL, Arg((4,))]],
    ),
    row(
        "tensorsolve",
        lambda a, b: jnp.linalg.tensorsolve(a.reshape(2, 2, 4), b),
        lambda a, b: np.linalg.tensorsolve(a.reshape(2, 2, 4), b),
        [[*BIG, Arg((2, 2))]],
    ),
    row(
        "tensorinv",
        lambda a: jnp.linalg.tensorinv(a.reshape(2, 2, 4)),
        lambda a: np.linalg.tensorinv(a.reshape(2, 2, 4)),
        [BIG],
    ),
]

DETERMINANTS = [
    row("det", jnp.linalg.det, like_inputs(np.linalg.det), [SQUARE, [Arg((2, 2))], [Arg((1, 1))]], order=2),
    row("det: by lu", jnp.linalg.det, like_inputs(np.linalg.det), [BIG, [dominant(2, 5, 5)]], order=2),
    row(
        "slogdet",
        lambda x: jnp.linalg.slogdet(x),
        lambda x: np.linalg.slogdet(x),
        [SQUARE, STACK, [Arg((4, 4))]],
        order=2,
    ),
    row(
        "slogdet: qr",
        lambda x: jnp.linalg.slogdet(x, method="qr"),
        lambda x: np.linalg.slogdet(x),
        [SQUARE, [Arg((2, 4, 4))]],
        dtypes=("float32", "float64"),
    ),
]

FACTORIZATIONS = [
    row(
        "cholesky",
        lambda x: jnp.linalg.cholesky(x, upper=True),
        lambda x: np.linalg.cholesky(x).conj().T,
        [[definite(3, 3)]],
    ),
    row("qr", lambda x: jnp.matmul(*jnp.linalg.qr(x)), lambda x: x, [SQUARE, TALL, WIDE]),
    row("qr: r", lambda x: abs(jnp.linalg.qr(x, "r")), lambda x: abs(np.linalg.qr(x, "r")), [SQUARE, TALL]),
    row(
        "svd", lambda x: jnp.linalg.svd(x, full_matrices=False)[1], lambda x: np.linalg.svd(x)[1], [TALL, SQUARE]
    ),
    row(
        "svd: hermitian",
        hermitian(lambda x: jnp.linalg.svd(x, hermitian=True)[1]),
        hermitian(lambda x: np.linalg.svd(x)[1]),
        [SQUARE],
    ),
    row("svdvals", lambda x: jnp.linalg.svdvals(x), lambda x: np.linalg.svd(x, compute_uv=False), [SQUARE, STACK]),
    row(
        "matrix_rank",
        jnp.linalg.matrix_rank,
        lambda x: np.asarray(np.linalg.matrix_rank(x), np.int32),
        [SQUARE, STACK],
        differentiable=False,
    ),
    row("cond", jnp.linalg.cond, lambda x: np.linalg.cond(x).astype(x.real.dtype), [SQUARE, TALL]),
    row("cond: 1", lambda x: jnp.linalg.cond(x, 1), lambda x: np.linalg.cond(x, 1).astype(x.real.dtype), [SQUARE]),
]

EIGEN = [
    row(
        "eig",
        lambda x: jnp.linalg.eig(x)[0].sum(-1).real,
        lambda x: x.trace(0, -2, -1).real,
        [SQUARE],
        differentiable=False,
    ),
    row(
        "eigvals",
        lambda x: jnp.linalg.eigvals(x).prod(-1).real,
        lambda x: np.linalg.det(x).real.astype(x.real.dtype),
        [SQUARE],
    ),
    row("eigh", hermitian(lambda x: jnp.linalg.eigh(x)[0]), hermitian(lambda x: np.linalg.eigh(x)[0]), [SQUARE]),
    row("eigvalsh", hermitian(jnp.linalg.eigvalsh), hermitian(np.linalg.eigvalsh), [SQUARE, STACK]),
]

VECTORS = [[Arg((5,), domain=(1, 4))]]
NORMS = [
    *(
        row(
            f"norm: vector {ord}",
            lambda x, ord=ord: jnp.linalg.norm(x, ord),
            real_norm(ord=ord),
            VECTORS,
            dtypes=(*KERNELS, "float16") if ord is None else KERNELS,
            tolerance={**LOOSE, "float16": 1e-2},
        )
        for ord in (None, 1, 3, 0.5, np.inf, -np.inf)
    ),
    *(
        row(f"norm: matrix {ord}", lambda x, ord=ord: jnp.linalg.norm(x, ord), real_norm(ord=ord), [SQUARE, TALL])
        for ord in ("fro", "nuc", 1, -1, 2, -2, np.inf)
    ),
    row("norm", lambda x: jnp.linalg.norm(x, axis=1, keepdims=True), real_norm(axis=1, keepdims=True), [WIDE]),
    row("vector_norm", lambda x: jnp.linalg.vector_norm(x, axis=(0, 1)), real_norm(), [WIDE]),
    row("matrix_norm", jnp.linalg.matrix_norm, real_norm(axis=(-2, -1)), [WIDE, STACK]),
]

PRODUCTS = [
    row("matrix_power", lambda x: jnp.linalg.matrix_power(x, 3), lambda x: x @ x @ x, [SQUARE], dtypes=NUMBERS),
    row(
        "matrix_power: inverse",
        lambda x: jnp.linalg.matrix_power(x, -2),
        lambda x: np.linalg.matrix_power(x, -2),
        [SQUARE],
    ),
    row(
        "multi_dot",
        lambda *xs: jnp.linalg.multi_dot(xs),
        lambda *xs: np.linalg.multi_dot(xs),
        [[Arg((2, 3)), Arg((3, 4)), Arg((4,))], [Arg((3,)), Arg((3, 2)), Arg((2, 4)), Arg((4, 1))]],
        dtypes=NUMBERS,
    ),
    row(
        "cross",
        jnp.linalg.cross,
        np.cross,
        [[Arg((2, 3)), Arg((3,))]],
        dtypes=(*FLOATS, *INTS),
        tolerance={"float32": 1e-5},
    ),
    row(
        "diagonal",
        lambda x: jnp.linalg.diagonal(x, offset=1),
        lambda x: np.diagonal(x, 1, -2, -1),
        [SQUARE, STACK],
        linear=True,
    ),
    row("matmul", jnp.linalg.matmul, np.matmul, [[Arg((2, 3)), Arg((3, 2))]]),
    row("matrix_transpose", jnp.linalg.matrix_transpose, lambda x: x.swapaxes(-1, -2), [STACK], linear=True),
    row("outer", jnp.linalg.outer, np.outer, [[Arg((2,)), Arg((3,))]]),
    row(
        "tensordot",
        lambda x, y: jnp.linalg.tensordot(x, y, axes=1),
        lambda x, y: np.tensordot(x, y, 1),
        [[Arg((2, 3)), Arg((3, 2))]],
    ),
    row(
        "trace",
        lambda x: jnp.linalg.trace(x, offset=-1),
        lambda x: np.trace(x, -1, -2, -1),
        [SQUARE, STACK],
        linear=True,
    ),
    row("vecdot", jnp.linalg.vecdot, lambda x, y: (x.conj() * y).sum(-1), [[Arg((2, 3)), Arg((3,))]]),
    Row(
        "numpy.cross",
        jnp.cross,
        np.cross,
        samples=[[Arg((2, 3)), Arg((3,))]],
        dtypes=(*FLOATS, *INTS),
        order=1,
        tolerance={"float32": 1e-5},
    ),
    Row(
        "numpy.cross: plane",
        lambda x, y: jnp.cross(x, y, axis=0),
        lambda x, y: x[0] * y[1] - x[1] * y[0],
        samples=[[Arg((2, 3)), Arg((2, 3))]],
        order=1,
    ),
]

ROWS = [*SOLVING, *DETERMINANTS, *FACTORIZATIONS, *EIGEN, *NORMS, *PRODUCTS]
