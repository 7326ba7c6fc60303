"""Matrices with a name: of Toeplitz, Hankel, Hilbert, Pascal, Hadamard, Helmert, Leslie, Fiedler, and companions.

Those made of whole numbers are computed exactly by Python and rounded once.
"""
from __future__ import annotations

import math
from typing import Any

import numpy as np

from xlamini import numpy as jnp
from xlamini.core import ShapeError, canonicalize_dtype, check_user_dtype, issubdtype
from xlamini.numpy.arguments import as_count, as_index, as_operand
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike, DTypeLike


@composite()
def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """The matrix with constant diagonals that has the first column `c` and the first row `r`, by default conj(c).

    `c` has shape (..., n), `r` (..., m), and the result (..., n, m); leading axes broadcast. `r[0]` is not looked at.

    >>> toeplitz(jnp.array([1, 2, 3]), jnp.array([9, 4]))
    Array([[1, 4],
           [2, 1],
           [3, 2]], dtype=int32)
    """
    c = _as_vector("toeplitz", c)
    r = jnp.conj(c) if r is None else _as_vector("toeplitz", r)
    c, r = _same_batch("toeplitz", c, r)
    values = jnp.concatenate([jnp.flip(r[..., 1:], -1), c], axis=-1)
    values = values.astype(values.dtype)  # no weak type, as in JAX
    n, m = c.shape[-1], r.shape[-1]
    return values[..., _rows(n) - _columns(m) + max(m - 1, 0)] if n * m else _empty(values, n, m)


@composite()
def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """The matrix with constant antidiagonals that has the first column `c` and the last row `r`, by default zeros.

    `c` has shape (..., n), `r` (..., m), and the result (..., n, m); leading axes broadcast. `r[0]` is not looked at.
    ShapeError for scalars.

    >>> hankel(jnp.array([1, 2, 3]), jnp.array([9, 4]))
    Array([[1, 2],
           [2, 3],
           [3, 4]], dtype=int32)
    """
    c = _vector("hankel", "c", c)
    r = jnp.zeros_like(c) if r is None else _vector("hankel", "r", r)
    c, r = _same_batch("hankel", c, r)
    values = jnp.concatenate([c, r[..., 1:]], axis=-1)
    n, m = c.shape[-1], r.shape[-1]
    return values[..., _rows(n) + _columns(m)] if n * m else _empty(values, n, m)


@composite()
def circulant(c: ArrayLike) -> Array:
    """The matrix with columns that are `c` turned by one more place each, of shape (..., n, n) for c of (..., n).

    >>> circulant(jnp.array([1, 2, 3]))
    Array([[1, 3, 2],
           [2, 1, 3],
           [3, 2, 1]], dtype=int32)
    """
    c = _as_vector("circulant", c)
    n = c.shape[-1]
    return c[..., _rows(n) - _columns(n)] if n else _empty(c, 0, 0)  # negative places count from the end


@composite(static=("n", "mode"))
def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """The matrix whose product with a vector v of length `n` is `jnp.convolve(a, v, mode)`.

    For `a` of shape (..., m) it has shape (..., k, n), where k is m + n - 1 ("full"), max(m, n) ("same") or
    max(m, n) - min(m, n) + 1 ("valid"). ValueError for another mode, an n below 1 or an `a` without elements.

    >>> convolution_matrix(jnp.array([1, 2]), 2)
    Array([[1, 0],
           [2, 1],
           [0, 2]], dtype=int32)
    """
    a, n = _vector("convolution_matrix", "a", a), _positive("convolution_matrix", n)
    m = a.shape[-1]
    if not m:
        raise ValueError("convolution_matrix: `a` needs one element at least along its last axis")
    rows = _window(m, n, mode)
    column = jnp.concatenate([a, jnp.zeros_like(a, shape=(*a.shape[:-1], n - 1))], axis=-1)
    row = jnp.zeros_like(a, shape=(*a.shape[:-1], n))
    return toeplitz(column, row)[..., rows, :]


def _window(m: int, n: int, mode: str) -> slice:
    """The rows of the full matrix that a mode keeps."""
    if mode == "full":
        return slice(None)
    if mode == "same":
        start = (min(m, n) - 1) // 2
        return slice(start, start + max(m, n))
    if mode == "valid":
        return slice(min(m, n) - 1, max(m, n))
    raise ValueError(f"convolution_matrix: mode must be 'full', 'valid' or 'same', got {mode!r}")


@composite()
def companion(a: ArrayLike) -> Array:
    """The matrix whose eigenvalues are the roots of the polynomial with coefficients `a`, from the highest power down.

    For `a` of shape (..., n), n >= 2, it has shape (..., n - 1, n - 1). ShapeError for fewer coefficients.

    >>> companion(jnp.array([2.0, 4.0, 6.0]))
    Array([[-2., -3.],
           [ 1.,  0.]], dtype=float32)
    """
    a = _vector("companion", "a", a)
    n = a.shape[-1] - 1
    if not n >= 1:
        raise ShapeError(f"companion: two coefficients at least are needed, got shape {a.shape}")
    first = -a[..., 1:] / a[..., :1]
    rest = jnp.broadcast_to(jnp.eye(n - 1, n, dtype=first.dtype), (*first.shape[:-1], n - 1, n))
    return jnp.concatenate([first[..., None, :], rest], axis=-2)


@composite()
def fiedler_companion(a: ArrayLike) -> Array:
    """A matrix with five diagonals whose eigenvalues are the roots of the polynomial with coefficients `a`.

    For `a` of shape (..., n), from the highest power down, it has shape (..., n - 1, n - 1). ShapeError for an axis
    without elements. M. Fiedler, "A note on companion matrices" (2003).

    >>> fiedler_companion(jnp.array([1.0, 2.0, 3.0, 4.0]))
    Array([[-2., -3.,  1.],
           [ 1.,  0.,  0.],
           [ 0., -4.,  0.]], dtype=float32)
    """
    a = _vector("fiedler_companion", "a", a)
    if not a.shape[-1]:
        raise ShapeError(f"fiedler_companion: one coefficient at least is needed, got shape {a.shape}")
    rest = -a[..., 1:] / a[..., :1]
    n = rest.shape[-1]
    row, column = _rows(n), _columns(n)
    even = row % 2 == 0
    left, right = even & (column == jnp.maximum(row - 1, 0)), even & (column == row + 1)
    one = column == jnp.where(even, row + 2, jnp.maximum(row - 2, 0))
    following = jnp.concatenate([rest[..., 1:], jnp.zeros_like(rest[..., :1])], axis=-1)
    others = jnp.where(right, following[..., None], one.astype(rest.dtype))
    return jnp.where(left, rest[..., None], others)


@composite()
def fiedler(a: ArrayLike) -> Array:
    """The absolute differences of all pairs of elements, of shape (..., n, n) for `a` of shape (..., n).

    >>> fiedler(jnp.array([1, 4]))
    Array([[0, 3],
           [3, 0]], dtype=int32)
    """
    a = _as_vector("fiedler", a)
    return jnp.abs(a[..., :, None] - a[..., None, :])


@composite()
def leslie(f: ArrayLike, s: ArrayLike) -> Array:
    """Leslie's matrix of a population: fecundities `f`, (..., n), in the first row, survival rates `s`, (..., n - 1),
    on the first subdiagonal. ShapeError for other lengths, or n < 2.

    >>> leslie(jnp.array([0.0, 2.0]), jnp.array([0.5]))
    Array([[0. , 2. ],
           [0.5, 0. ]], dtype=float32)
    """
    f, s = _vector("leslie", "f", f), _vector("leslie", "s", s)
    n = f.shape[-1]
    if n < 2 or s.shape[-1] != n - 1:
        raise ShapeError(
            f"leslie: f has shape {f.shape}, s {s.shape}; f needs two elements at least, and s one less than f"
        )
    f, s = _same_batch("leslie", *(x.astype(jnp.result_type(f, s)) for x in (f, s)))
    below = s[..., None] * jnp.eye(n - 1, n, dtype=s.dtype)
    return jnp.concatenate([f[..., None, :], below], axis=-2)


@composite()
def block_diag(*arrs: ArrayLike) -> Array:
    """The block diagonal matrix of these matrices, zeros off the blocks; vectors count as rows. Dtypes are promoted.

    ShapeError for more than two dimensions.

    >>> block_diag(1, jnp.array([[2, 3]]))
    Array([[1, 0, 0],
           [0, 2, 3]], dtype=int32)
    """
    operands = [as_operand("block_diag", x) for x in arrs]
    blocks = [x if x.ndim >= 2 else jnp.reshape(x, (1, -1)) for x in operands] or [jnp.zeros((1, 0))]
    for i, block in enumerate(blocks):
        if block.ndim > 2:
            raise ShapeError(f"block_diag: two dimensions at most are allowed, got shape {block.shape} as argument {i}")
    dtype = jnp.result_type(*arrs) if arrs else blocks[0].dtype
    total, before, rows = sum(b.shape[1] for b in blocks), 0, []
    for block in blocks:
        after = total - before - block.shape[1]
        rows.append(jnp.pad(block.astype(dtype), ((0, 0), (before, after))))
        before += block.shape[1]
    return jnp.concatenate(rows)


@composite(static=("n",))
def hilbert(n: int) -> Array:
    """Hilbert's matrix of n rows: element [i, j] is `1 / (i + j + 1)`.

    >>> hilbert(2)
    Array([[1.        , 0.5       ],
           [0.5       , 0.33333334]], dtype=float32)
    """
    i = jnp.arange(as_index("hilbert", "n", n), dtype=float)
    return 1 / (i[:, None] + i[None] + 1)


def invhilbert(n: int) -> Array:
    """The inverse of Hilbert's matrix of n rows, whose elements are whole numbers (and grow fast).

    >>> invhilbert(2)
    Array([[ 4., -6.],
           [-6., 12.]], dtype=float32)
    """
    n = as_count("invhilbert", "n", n)
    return _rounded(
        [
            [
                (-1) ** (i + j)
                * (i + j + 1)
                * math.comb(n + i, n - j - 1)
                * math.comb(n + j, n - i - 1)
                * math.comb(i + j, i) ** 2
                for j in range(n)
            ]
            for i in range(n)
        ]
    )


def pascal(n: int, kind: str | None = None) -> Array:
    """Pascal's matrix of n rows, of binomial coefficients: "symmetric" (the default), "lower" or "upper".

    >>> pascal(3, "lower")
    Array([[1., 0., 0.],
           [1., 1., 0.],
           [1., 2., 1.]], dtype=float32)
    """
    n, kind = as_count("pascal", "n", n), _kind("pascal", kind)
    if kind == "symmetric":
        return _rounded([[math.comb(i + j, i) for j in range(n)] for i in range(n)])
    rows = [[math.comb(i, j) for j in range(n)] for i in range(n)]
    return _rounded(rows if kind == "lower" else _turned(rows))


def invpascal(n: int, kind: str | None = None) -> Array:
    """The inverse of Pascal's matrix of n rows: "symmetric" (the default), "lower" or "upper".

    >>> invpascal(2)
    Array([[ 2., -1.],
           [-1.,  1.]], dtype=float32)
    """
    n, kind = as_count("invpascal", "n", n), _kind("invpascal", kind)
    lower = [[(-1) ** (i + j) * math.comb(i, j) for j in range(n)] for i in range(n)]
    if kind == "symmetric":  # the inverse of (lower times upper) is (inverse of upper) times (inverse of lower)
        return _rounded([[sum(row[i] * row[j] for row in lower) for j in range(n)] for i in range(n)])
    return _rounded(lower if kind == "lower" else _turned(lower))


@composite(static=("n", "scale", "dtype"))
def dft(n: int, scale: str | None = None, *, dtype: DTypeLike | None = None) -> Array:
    """The matrix of the discrete Fourier transform: element [j, k] is `exp(-2 pi i j k / n)`.

    `scale` divides it by sqrt(n) ("sqrtn", which makes it unitary) or by n ("n"). ValueError for another scale or a
    dtype that is not complex.

    >>> abs(dft(2))
    Array([[1., 1.],
           [1., 1.]], dtype=float32)
    """
    if scale not in (None, "sqrtn", "n"):
        raise ValueError(f"dft: scale must be None, 'sqrtn' or 'n', got {scale!r}")
    kind = canonicalize_dtype(complex) if dtype is None else check_user_dtype(dtype, "dft")
    if not issubdtype(kind, np.complexfloating):
        raise ValueError(f"dft: dtype must be complex, got {np.dtype(kind).name}; complex64, say")
    n = as_count("dft", "n", n)
    j = np.arange(n)
    turns = np.outer(j, j) % max(n, 1)  # whole revolutions are removed before they cost precision
    values = np.exp(-2j * np.pi * turns / max(n, 1)) / {None: 1, "sqrtn": math.sqrt(n), "n": n}[scale]
    return jnp.asarray(values.astype(kind))


def hadamard(n: int, dtype: DTypeLike = int) -> Array:
    """Sylvester's matrix of ones and minus ones with orthogonal rows. ValueError unless n is a power of 2.

    >>> hadamard(2)
    Array([[ 1,  1],
           [ 1, -1]], dtype=int32)
    """
    n = as_count("hadamard", "n", n, 2**14)
    if n < 1 or n & (n - 1):
        raise ValueError(f"hadamard: n must be a power of 2, got {n}")
    matrix = np.ones((1, 1), np.int8)
    while len(matrix) < n:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return jnp.asarray(matrix.astype(check_user_dtype(dtype, "hadamard")))


def helmert(n: int, full: bool = False) -> Array:
    """Helmert's matrix of orthonormal contrasts, n - 1 rows by n; with `full` a first row `1 / sqrt(n)` is added.

    ValueError for n below 1.

    >>> helmert(2)
    Array([[ 0.70710677, -0.70710677]], dtype=float32)
    """
    n = _positive("helmert", as_count("helmert", "n", n))
    k = np.arange(1, n)
    rows = (np.tri(n - 1, n) - k[:, None] * np.eye(n - 1, n, 1)) / np.sqrt(k * (k + 1.0))[:, None]
    return _in_default_float(np.concatenate([np.full((1, n), 1 / math.sqrt(n)), rows]) if full else rows)


# --- arguments


def _as_vector(name: str, operand: Any) -> Array:
    x = as_operand(name, operand)
    return x if x.ndim else x[None]


def _vector(name: str, argument: str, operand: Any) -> Array:
    x = as_operand(name, operand)
    if not x.ndim:
        raise ShapeError(f"{name}: `{argument}` must have one dimension at least, got a scalar")
    return x


def _positive(name: str, n: Any) -> int:
    n = as_index(name, "n", n)
    if n < 1:
        raise ValueError(f"{name}: n must be positive, got {n}")
    return n


def _kind(name: str, kind: str | None) -> str:
    if kind not in (None, "symmetric", "lower", "upper"):
        raise ValueError(f"{name}: kind must be 'symmetric', 'lower' or 'upper', got {kind!r}")
    return kind or "symmetric"


def _same_batch(name: str, x: Array, y: Array) -> tuple[Array, Array]:
    """Two stacks of vectors with their leading axes broadcast."""
    try:
        outer = jnp.broadcast_shapes(x.shape[:-1], y.shape[:-1])
    except ValueError:
        raise ShapeError(f"{name}: leading axes of {x.shape} and {y.shape} do not broadcast") from None
    return jnp.broadcast_to(x, (*outer, x.shape[-1])), jnp.broadcast_to(y, (*outer, y.shape[-1]))


# --- matrices


def _rows(n: int) -> Any:
    """The number of each row, computed by the program: an array of all places would be an argument of it."""
    return jnp.arange(n)[:, None]


def _columns(n: int) -> Any:
    """The number of each column, likewise."""
    return jnp.arange(n)[None]


def _empty(values: Any, rows: int, columns: int) -> Any:
    return jnp.zeros_like(values, shape=(*values.shape[:-1], rows, columns))


def _turned(rows: list[list[int]]) -> list[list[int]]:
    return [list(column) for column in zip(*rows, strict=True)]


def _rounded(rows: list[list[int]]) -> Any:
    """A square matrix of whole numbers in the default float dtype; those too large for it are infinite."""
    wide = np.array([[_float(x) for x in row] for row in rows], float)
    return _in_default_float(wide.reshape(len(rows), len(rows)))


def _in_default_float(matrix: np.ndarray) -> Any:
    with np.errstate(over="ignore"):
        return jnp.asarray(matrix.astype(canonicalize_dtype(float)))


def _float(x: int) -> float:
    try:
        return float(x)
    except OverflowError:
        return math.copysign(math.inf, x)
