"""scipy.linalg beside SciPy; of what has free signs and phases the product."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg as sl

from tests.rows.linalg_spectral import LOOSE, general, hermitian, mH
from tests.rows.row import COMPLEXES, FLOATS, Arg, Array, Row
from xlamini import numpy as jnp
from xlamini.scipy import linalg

FIELDS = (*FLOATS[2:], *COMPLEXES)
NUMBERS = ("float32", "float64", "int32", "complex64")


def static(name: str, *args: Any, tolerance: float = 1e-6, **kwargs: Any) -> Row:
    """A function of Python numbers, whose result is added to an array of zeros."""
    expected = np.asarray(getattr(sl, name)(*args, **kwargs))
    wide = expected.astype(complex) if expected.dtype.kind == "c" else expected.astype(float)
    return Row(
        f"scipy.linalg.{name}: {args} {kwargs}",
        lambda x: x + getattr(linalg, name)(*args, **kwargs).astype(x.dtype),
        lambda x: x + wide.astype(x.dtype),
        samples=[[Arg(wide.shape, domain=(0, 0))]],
        dtypes=("complex64",) if expected.dtype.kind == "c" else ("float32",),
        differentiable=False,
        batched=False,
        tolerance={"float32": tolerance, "complex64": tolerance},
    )


def of_vector(name: str, *shapes: tuple[int, ...], **options: Any) -> Row:
    """A function that arranges the elements of vectors."""
    dtypes = options.pop("dtypes", NUMBERS)
    return Row(
        f"scipy.linalg.{name}", getattr(linalg, name), getattr(sl, name),
        samples=[[Arg(shape, domain=(1, 4)) for shape in shapes]], dtypes=dtypes, order=1, **options,
    )


def decomposition(name: str, op: Callable[..., Any], reference: Callable[..., Any], sample: Any, **options: Any) -> Row:
    given = {"order": 1, "dtypes": FIELDS, "tolerance": LOOSE, **options}
    return Row(f"scipy.linalg.{name}", op, reference, samples=[sample], **given)


def positive(rng: np.random.Generator, dtype: np.dtype) -> Array:
    return hermitian(3, 3)[0].values(rng, dtype) + 4 * np.eye(3)


POSITIVE = Arg((3, 3), values=positive)
RIGHT = Arg((3, 2))


def whole(a: Any) -> Any:
    """Derivatives of Cholesky's factor are those along Hermitian matrices, though only one triangle is read."""
    return (a + jnp.conj(a.T)) / 2


def by_cholesky(a: Any, b: Any) -> Any:
    return linalg.cho_solve(linalg.cho_factor(whole(a)), b)


def by_lu(a: Any, b: Any) -> Any:
    factors = linalg.lu_factor(a)
    return [linalg.lu_solve(factors, b, trans) for trans in (0, 1, 2)]


def numpy_by_lu(a: Array, b: Array) -> list[Array]:
    return [np.linalg.solve(m, b) for m in (a, a.T, mH(a))]


def product_of_qr(a: Any) -> Any:
    q, r, p = linalg.qr(a, mode="economic", pivoting=True)
    return q @ r - a[:, p], jnp.abs(linalg.qr(a, mode="r")[0])


def numpy_product_of_qr(a: Array) -> Any:
    return np.zeros_like(a), np.abs(np.linalg.qr(a, "complete").R)


def product_of_lu(a: Any) -> Any:
    p, lower, upper = linalg.lu(a)
    return p.astype(a.dtype) @ lower @ upper, lower


def numpy_product_of_lu(a: Array) -> Any:
    return a, sl.lu(a)[1]


def product_of_schur(a: Any) -> Any:
    t, z = linalg.schur(a, "complex")
    return z @ t @ jnp.conj(z.T) - a, jnp.tril(t, -1)


def product_of_csf(a: Any) -> Any:
    t, z = linalg.rsf2csf(*linalg.schur(a))
    return z @ t @ jnp.conj(z.T) - a, jnp.tril(t, -1)


def complex_zeros(a: Array) -> Any:
    zeros = np.zeros_like(a, np.result_type(a, np.complex64))
    return zeros, zeros


def product_of_hessenberg(a: Any) -> Any:
    h, q = linalg.hessenberg(a, calc_q=True)
    return q @ h @ jnp.conj(q.T), linalg.hessenberg(a)


def tridiagonal(d: Any, e: Any) -> Any:
    w, v = linalg.eigh_tridiagonal(d, e)
    return w, jnp.abs(v) ** 2


def numpy_tridiagonal(d: Array, e: Array) -> Any:
    w, v = np.linalg.eigh(np.diag(d) + np.diag(e, 1) + np.diag(e, -1))
    return w, np.abs(v) ** 2


def complexes(x: Array) -> Array:
    return np.asarray(x, np.result_type(x, np.complex64))


REALS = ("float32", "float64")
KINDS = ("symmetric", "lower", "upper")
ROWS = [
    *(static(name, 4) for name in ("hilbert", "invhilbert", "hadamard", "helmert", "dft")),
    static("helmert", 3, full=True),
    static("dft", 3, "sqrtn"),
    *(static(name, 4, kind) for name in ("pascal", "invpascal") for kind in KINDS),
    of_vector("toeplitz", (3,)),
    of_vector("hankel", (3,), (2,)),
    of_vector("circulant", (3,)),
    of_vector("companion", (4,), dtypes=REALS),
    of_vector("fiedler", (3,), dtypes=("int32", "float32")),
    of_vector("fiedler_companion", (5,), dtypes=REALS),
    of_vector("leslie", (3,), (2,)),
    Row(
        "scipy.linalg.block_diag", lambda a, b: linalg.block_diag(a, 2, b),
        lambda a, b: sl.block_diag(a, a.dtype.type(2), b),
        samples=[[Arg((2, 1)), Arg((3,))]], dtypes=NUMBERS, order=1,
    ),
    *(
        Row(
            f"scipy.linalg.convolution_matrix: {mode}", lambda a, m=mode: linalg.convolution_matrix(a, 4, m),
            lambda a, m=mode: sl.convolution_matrix(a, 4, m), samples=[[Arg((3,))]], dtypes=NUMBERS, order=1,
        )
        for mode in ("full", "same", "valid")
    ),
    decomposition("cholesky", lambda a: linalg.cholesky(whole(a)), lambda a: sl.cholesky(a), [POSITIVE]),
    decomposition(
        "cho_factor", lambda a: linalg.cho_factor(whole(a), True)[0], lambda a: sl.cholesky(a, True), [POSITIVE]
    ),
    decomposition("cho_solve", by_cholesky, np.linalg.solve, [POSITIVE, RIGHT]),
    decomposition("lu", product_of_lu, numpy_product_of_lu, general(3, 3)),
    decomposition("lu_factor", lambda a: linalg.lu_factor(a)[0], lambda a: sl.lu_factor(a)[0], general(3, 3)),
    decomposition("lu_solve", by_lu, numpy_by_lu, [*general(3, 3), RIGHT]),
    decomposition("qr", product_of_qr, numpy_product_of_qr, general(4, 3), differentiable=False),
    decomposition(
        "qr_multiply", lambda a, c: jnp.abs(linalg.qr_multiply(a, c)[0]), lambda a, c: np.abs(c @ np.linalg.qr(a)[0]),
        [*general(3, 3), Arg((2, 3))], differentiable=False,
    ),
    decomposition(
        "svd", lambda a: linalg.svd(a, full_matrices=False)[1], lambda a: np.linalg.svd(a)[1], general(3, 2)
    ),
    decomposition("eigh", lambda a: linalg.eigh(a)[0], np.linalg.eigvalsh, hermitian(3, 3)),
    decomposition("schur", product_of_schur, complex_zeros, [Arg((4, 4))], differentiable=False),
    decomposition(
        "rsf2csf", product_of_csf, complex_zeros, [Arg((4, 4))], differentiable=False, dtypes=REALS
    ),
    decomposition(
        "hessenberg", product_of_hessenberg, lambda a: (a, sl.hessenberg(a)), [Arg((4, 4))], differentiable=False
    ),
    decomposition(
        "eigh_tridiagonal", tridiagonal, numpy_tridiagonal, [Arg((3,), values=lambda rng, t: [1, 4, 9]), Arg((2,))],
        dtypes=REALS,
    ),
    *(
        decomposition(
            f"polar: {method}", lambda a, m=method: linalg.polar(a, method=m), lambda a: sl.polar(a), general(3, 3)
        )
        for method in ("qdwh", "svd")
    ),
    decomposition("solve", lambda a, b: linalg.solve(a, b), np.linalg.solve, [*general(3, 3), RIGHT]),
    decomposition(
        "solve: positive", lambda a, b: linalg.solve(a, b, assume_a="pos"), np.linalg.solve, [POSITIVE, RIGHT],
        differentiable=False,
    ),
    decomposition(
        "solve_triangular", lambda a, b: [linalg.solve_triangular(a, b, t, lower=True) for t in ("N", "T", "C")],
        lambda a, b: [sl.solve_triangular(a, b, t, lower=True) for t in ("N", "T", "C")], [*general(3, 3), RIGHT],
    ),
    decomposition("inv", lambda a: linalg.inv(a), np.linalg.inv, general(3, 3)),
    decomposition("det", lambda a: linalg.det(a), np.linalg.det, general(3, 3)),
    decomposition("expm", linalg.expm, sl.expm, [Arg((3, 3), domain=(-2, 2))], order=2),
    decomposition("expm: small", linalg.expm, sl.expm, [Arg((3, 3), domain=(-0.05, 0.05))]),
    decomposition(
        "expm: upper", lambda a: linalg.expm(jnp.triu(a), upper_triangular=True), lambda a: sl.expm(np.triu(a)),
        [Arg((3, 3), domain=(-2, 2))],
    ),
    decomposition("expm_frechet", linalg.expm_frechet, sl.expm_frechet, [Arg((3, 3), domain=(-1, 1))] * 2),
    decomposition("sqrtm", lambda a: linalg.sqrtm(a), lambda a: complexes(sl.sqrtm(a)), general(3, 3)),
    decomposition(
        "funm", lambda a: linalg.funm(a, jnp.exp), lambda a: complexes(sl.expm(a)), general(3, 3),
        differentiable=False, batched=False, dtypes=("float64", "complex128"),
    ),
    *(
        decomposition(
            f"solve_sylvester: {method}", lambda a, b, c, m=method: linalg.solve_sylvester(a, b, c, method=m),
            sl.solve_sylvester, [*general(3, 3), *general(2, 2), RIGHT],
        )
        for method in ("schur", "eigen")
    ),
]
