"""Functions of matrices: the exponential and its derivative, the square root, and any function by Schur's form.

N. Higham, "The scaling and squaring method for the matrix exponential revisited" (2005); "Functions of Matrices"
(2008), algorithm 4.13 for Parlett's recurrence and 6.3 for the square root.
"""
from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from xlamini import numpy as jnp
from xlamini.core import ShapeError, memoised
from xlamini.numpy.linalg import solving
from xlamini.numpy.linalg.arguments import inexact, shown, squares
from xlamini.primitives import promoting_freely
from xlamini.primitives.linalg.schur import schur
from xlamini.primitives.linalg.stacks import check_matrix, matmul, mH, triu
from xlamini.primitives.linalg.triangular_solve import triangular_solve
from xlamini.runtime import Array
from xlamini.scipy.linalg.sylvester import solve_checked
from xlamini.staging import composite
from xlamini.transforms.cond.api import cond, switch
from xlamini.transforms.control_flow.fori_loop import fori_loop
from xlamini.transforms.custom.custom_jvp import custom_jvp
from xlamini.transforms.derivatives.jvp import jvp
from xlamini.transforms.scan.api import scan
from xlamini.typing import ArrayLike

_DEGREES = {
    np.dtype(np.float32): ((3, 4.258730016922831e-1), (5, 1.880152677804762), (7, 3.925724783138660)),
    np.dtype(np.float64): (
        (3, 1.495585217958292e-2),
        (5, 2.539398330063230e-1),
        (7, 9.504178996162932e-1),
        (9, 2.097847961257068),
        (13, 5.371920351148152),
    ),
}
"""Degrees of Pade approximants of exp, and up to which norm of the matrix each is precise (Higham 2005, table 2.3)."""


@composite(static=("upper_triangular", "max_squarings"))
def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """The exponential of matrices of shape (..., n, n): the sum of `A^k / k!` over k = 0, 1, 2, ….

    `upper_triangular` promises that the matrices are so, which is faster. A matrix so large that more than
    `max_squarings` squarings are needed gives NaN. ShapeError for matrices that are not square.

    >>> expm(jnp.array([[0.0, 1.0], [0.0, 0.0]]))
    Array([[1., 1.],
           [0., 1.]], dtype=float32)
    """
    a = squares("expm", A)
    check_matrix("expm", a.aval)
    degrees = _DEGREES.get(jnp.finfo(a.dtype).dtype)
    if degrees is None:
        raise TypeError(f"expm does not accept dtype {a.dtype.name}; convert with .astype('float32')")
    if not a.size:
        return a
    norm = jnp.max(jnp.sum(jnp.abs(a), axis=-2), axis=-1)
    needed = jnp.log2(norm / degrees[-1][1])
    count = jnp.maximum(0, jnp.ceil(needed))
    # NaN here, where it costs no pass over the result.
    factor = jnp.where(needed < max_squarings + 1, 2.0**count, np.nan)
    scaled = a / factor[..., None, None].astype(a.dtype)
    index = jnp.sum(jnp.array([bound for _, bound in degrees[:-1]], norm.dtype) < jnp.max(norm))
    odd, even = switch(index, [functools.partial(_pade, degree) for degree, _ in degrees], scaled)
    solve = functools.partial(triangular_solve, left_side=True) if upper_triangular else solving.solve
    return _squared(solve(even - odd, even + odd), count, max_squarings + 1)


@composite(static=("method", "compute_expm"))
def expm_frechet(A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool = True) -> Any:
    """`expm(A)` and its derivative at A in the direction E, both of shape (..., n, n); the derivative alone without
    `compute_expm`. `method` changes nothing. ShapeError where shapes differ or are not square.

    >>> expm_frechet(jnp.zeros((1, 1)), jnp.ones((1, 1)))
    (Array([[1.]], dtype=float32), Array([[1.]], dtype=float32))
    """
    a, e = inexact("expm_frechet", A, E)
    a = squares("expm_frechet", a)
    if e.shape != a.shape:
        raise ShapeError(f"expm_frechet: A and E must have one shape, got {shown(a)} and {shown(e)}")
    value, derivative = jvp(expm, (a,), (e,))
    return (value, derivative) if compute_expm else derivative


@composite(static=("blocksize",))
@promoting_freely
def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:
    """The complex principal square roots of matrices of shape (..., n, n). On the CPU only.

    NotImplementedError for another `blocksize` than 1.

    >>> sqrtm(jnp.array([[4.0, 0.0], [0.0, 9.0]])).real
    Array([[2., 0.],
           [0., 3.]], dtype=float32)
    """
    if blocksize != 1:
        raise NotImplementedError("sqrtm: there is no blocked algorithm; leave out blocksize")
    a = squares("sqrtm", A)
    return _root(a.astype(np.result_type(a.dtype, np.complex64)))


@custom_jvp
def _root(a: Any) -> Any:
    form, vectors = schur(a)
    root = _by_columns(jnp.sqrt(_diagonal(form)), functools.partial(_root_column, form), form)
    return matmul(matmul(vectors, root), mH(vectors))


@_root.defjvp
def _(primals: Any, tangents: Any) -> Any:
    """Of `X X = A` it is Sylvester's equation `X dX + dX X = dA`."""
    root = _root(*primals)
    return root, solve_checked(root, root, *tangents)


def funm(A: ArrayLike, func: Callable[[Array], Array], disp: bool = True) -> Any:
    """A function of a matrix of shape (n, n), complex: `func` of its eigenvalues, elementwise, carried to the matrix.

    Not precise where eigenvalues nearly coincide; with `disp=False` there is an estimate of the relative error too. On
    the CPU only, without derivative. ShapeError for another shape.

    >>> funm(jnp.array([[4.0, 0.0], [0.0, 9.0]]), jnp.sqrt).real
    Array([[2., 0.],
           [0., 3.]], dtype=float32)
    """
    (a,) = inexact("funm", A)
    if a.ndim != 2 or a.shape[0] != a.shape[1]:
        raise ShapeError(f"funm: a square matrix is needed, got {shown(a)}; use vmap for a stack of them")
    form, vectors = schur(a.astype(np.result_type(a.dtype, np.complex64)))
    values = func(_diagonal(form)).astype(form.dtype)
    found = _by_columns(values, functools.partial(_parlett_column, form, values), form)
    result = matmul(matmul(vectors, found), mH(vectors))
    return result if disp else (result, _error_of_parlett(form))


@composite(static=("check_finite",))
def rsf2csf(T: ArrayLike, Z: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """Schur's complex form, T triangular and Z unitary, from the real one that `schur` gives, of shape (..., n, n).

    ShapeError where T is not square or Z of another size.

    >>> rsf2csf(jnp.eye(2), jnp.eye(2))[0].real
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    t, z = inexact("rsf2csf", T, Z)
    t = squares("rsf2csf", t)
    if z.ndim < 2 or z.shape[-2:] != t.shape[-2:]:
        raise ShapeError(f"rsf2csf: Z must be of the size of T, got {shown(z)} and {shown(t)}")
    outer = jnp.broadcast_shapes(t.shape[:-2], z.shape[:-2])
    t, z = (jnp.broadcast_to(x, (*outer, *x.shape[-2:])).astype(np.result_type(x.dtype, np.complex64)) for x in (t, z))
    n = t.shape[-1]
    t, z = fori_loop(0, max(n - 1, 0), lambda i, both: _rotated(n - 1 - i, *both), (t, z))
    return triu(t), z


# --- the exponential


def _pade(degree: int, a: Any) -> tuple[Any, Any]:
    """The odd powers U and the even ones V of the numerator; the Pade approximant of exp(a) is (V + U) / (V - U)."""
    b = _coefficients(degree)
    square = matmul(a, a)
    identity = jnp.broadcast_to(jnp.eye(a.shape[-1], dtype=a.dtype), a.shape)
    powers = [identity, square]
    for _ in range(2 if degree == 13 else degree // 2 - 1):
        powers.append(matmul(powers[-1], square))
    odd, even = (_in_blocks(b[first::2], powers) for first in (1, 0))
    return matmul(a, odd), even


@memoised("helper: coefficients of expm", 64)
def _coefficients(degree: int) -> tuple[int, ...]:
    """The coefficients of the numerator's powers, from the lowest up; the highest one is 1."""
    return tuple(
        math.factorial(2 * degree - j) // (math.factorial(degree - j) * math.factorial(j)) for j in range(degree + 1)
    )


def _in_blocks(coefficients: tuple[int, ...], powers: list[Any]) -> Any:
    """The polynomial with these coefficients of the powers; higher ones by those times the highest power."""
    last = len(powers) - 1
    low = _combined(coefficients[: last + 1], powers)
    high = coefficients[last + 1 :]
    return low + matmul(powers[last], _combined(high, powers[1:])) if high else low


def _combined(coefficients: tuple[int, ...], powers: list[Any]) -> Any:
    return sum(float(c) * p for c, p in zip(coefficients, powers, strict=False))


def _squared(x: Any, count: Any, most: int) -> Any:
    """`x` squared `count` times, each matrix as often as it needs."""

    def once(x: Any, i: Any) -> Any:
        more = i < count
        square = functools.partial(_square_where, more[..., None, None])
        return cond(jnp.any(more), square, lambda x: x, x), None

    return scan(once, x, jnp.arange(most, dtype=count.dtype))[0]


def _square_where(more: Any, x: Any) -> Any:
    return matmul(x, x) if x.ndim == 2 else jnp.where(more, matmul(x, x), x)


# --- triangular matrices, column by column


def _diagonal(x: Any) -> Any:
    return jnp.diagonal(x, axis1=-2, axis2=-1)


def _by_columns(values: Any, column: Callable[..., Any], form: Any) -> Any:
    """The upper triangular matrix with this diagonal, whose column j `column(j, columns before)` gives above it."""
    n = form.shape[-1]
    rows = jnp.arange(n)
    start = jnp.where(jnp.eye(n, dtype=bool), values[..., None, :], 0).astype(form.dtype)

    def step(j: Any, found: Any) -> Any:
        known = jnp.where(rows < j, found, 0)
        above = jnp.where(rows < j, column(j, known), 0)
        return jnp.where(rows == j, found + above[..., :, None], found)

    return fori_loop(1, max(n, 1), step, start)


def _root_column(form: Any, j: Any, known: Any) -> Any:
    """Column j of R with R R = T: (R + R[j, j]) r = T[:, j]."""
    corner = jnp.sqrt(jnp.take(_diagonal(form), j, axis=-1))
    return _solved(known, corner, jnp.take(form, j, axis=-1))


@promoting_freely
def _parlett_column(form: Any, values: Any, j: Any, known: Any) -> Any:
    """Column j of F with F T = T F: (T[j, j] - T) f = T[:, j] F[j, j] - F T[:, j]."""
    target = jnp.take(form, j, axis=-1)
    right = target * values[j] - matmul(known, target[:, None])[:, 0]
    return _solved(-form, form[j, j], right, j)


def _solved(matrix: Any, shift: Any, right: Any, size: Any = None) -> Any:
    """Solve `(matrix + shift) x = right`, triangular; a zero on the diagonal counts as one."""
    n = matrix.shape[-1]
    rows = jnp.arange(n)
    if size is not None:
        inside = rows < size
        matrix, right = jnp.where(inside[:, None] & inside, matrix, 0), jnp.where(inside, right, 0)
    shifted = matrix + shift[..., None, None] * jnp.eye(n, dtype=matrix.dtype)
    safe = jnp.where(jnp.eye(n, dtype=bool) & (shifted == 0), 1, shifted)
    return triangular_solve(safe, right[..., None], left_side=True)[..., 0]


def _error_of_parlett(form: Any) -> Any:
    """The rounding error, grown by the smallest difference of eigenvalues."""
    eps = jnp.finfo(form.dtype).eps
    n = form.shape[-1]
    values = _diagonal(form)
    pairs = jnp.arange(n)[:, None] < jnp.arange(n)
    least = jnp.min(jnp.abs(values[:, None] - values), where=pairs, initial=np.inf)
    least = jnp.where(least == 0, eps, least)
    norm = jnp.max(jnp.sum(jnp.abs(triu(form, 1)), axis=0), initial=0)
    return jnp.minimum(1, jnp.maximum(eps, eps / least * norm))


# --- Schur's forms


def _rotated(m: Any, t: Any, z: Any) -> tuple[Any, Any]:
    """Make T[m, m - 1] zero by a rotation of rows and columns m - 1 and m, where they are a block of the real form."""
    block = _pair(_pair(t, m, -2), m, -1)
    lowest = block[..., 1, 0]
    size = jnp.abs(block[..., 0, 0]) + jnp.abs(block[..., 1, 1])
    half = (block[..., 0, 0] - block[..., 1, 1]) / 2
    root = half + jnp.sqrt(half**2 + block[..., 0, 1] * lowest)  # an eigenvalue of the block, less T[m, m]
    length = jnp.sqrt(jnp.abs(root) ** 2 + jnp.abs(lowest) ** 2)
    needed = jnp.abs(lowest) > jnp.finfo(t.dtype).eps * size
    safe = jnp.where(needed, length, 1).astype(t.dtype)
    c, s = jnp.where(needed, root / safe, 1), jnp.where(needed, lowest / safe, 0)
    rotation = jnp.stack([jnp.stack([jnp.conj(c), s], -1), jnp.stack([-s, c], -1)], -2)
    turned = _with_pair(t, matmul(rotation, _pair(t, m, -2)), m, -2)
    back = mH(rotation)
    return tuple(_with_pair(x, matmul(_pair(x, m, -1), back), m, -1) for x in (turned, z))  # type: ignore[return-value]


def _pair(x: Any, m: Any, axis: int) -> Any:
    """Rows or columns m - 1 and m."""
    return jnp.take(x, m - 1 + jnp.arange(2), axis=axis)


def _with_pair(x: Any, pair: Any, m: Any, axis: int) -> Any:
    index = m - 1 + jnp.arange(2)
    return x.at[..., index, :].set(pair) if axis == -2 else x.at[..., index].set(pair)
