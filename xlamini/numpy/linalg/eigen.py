"""Eigenvalues and eigenvectors, of general and of Hermitian matrices."""
from __future__ import annotations

from typing import Any, NamedTuple

from xlamini.numpy.linalg.arguments import squares
from xlamini.primitives.linalg import eig as _eig, eigh as _eigh
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.typing import ArrayLike


class EigResult(NamedTuple):
    """Eigenvalues, and eigenvectors as columns."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """Eigenvalues in ascending order, and eigenvectors as columns."""

    eigenvalues: Array
    eigenvectors: Array


@composite()
def eig(a: ArrayLike) -> EigResult:
    """Eigenvalues and eigenvectors of square matrices of shape [..., n, n], complex also for real ones.

    The eigenvectors, columns of length 1, have no derivative. ShapeError for matrices that are not square.

    >>> eig(jnp.array([[1.0, 2.0], [0.0, 3.0]])).eigenvalues
    Array([1.+0.j, 3.+0.j], dtype=complex64)
    """
    values, vectors = _eig.eig(squares("eig", a), compute_left_eigenvectors=False)
    return EigResult(values, vectors)


@composite()
def eigvals(a: ArrayLike) -> Array:
    """The eigenvalues of square matrices of shape [..., n, n], complex also for real ones.

    >>> eigvals(jnp.array([[0.0, -1.0], [1.0, 0.0]]))
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    return _eig.eig(squares("eigvals", a), compute_left_eigenvectors=False, compute_right_eigenvectors=False)[0]


@composite(static=("UPLO", "symmetrize_input"))
def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Eigenvalues, ascending, and eigenvectors of Hermitian matrices of shape [..., n, n].

    `symmetrize_input` takes `(a + a^H) / 2`; without it only the lower triangle is read, or with `UPLO="U"` the upper
    one. ShapeError for matrices that are not square.

    >>> eigh(jnp.array([[2.0, 1.0], [1.0, 2.0]])).eigenvalues
    Array([1., 3.], dtype=float32)
    """
    return _eigh_of("eigh", a, UPLO, symmetrize_input)


@composite(static=("UPLO", "symmetrize_input"))
def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """The eigenvalues of Hermitian matrices of shape [..., n, n], ascending; see `eigh`.

    >>> eigvalsh(jnp.array([[2.0, 1.0], [1.0, 2.0]]))
    Array([1., 3.], dtype=float32)
    """
    return _eigh_of("eigvalsh", a, UPLO, symmetrize_input).eigenvalues


def _eigh_of(name: str, a: Any, uplo: str | None, symmetrize_input: bool) -> EighResult:
    if uplo not in (None, "L", "U"):
        raise ValueError(f"{name}: UPLO is {uplo!r}; give 'L' or 'U', the triangle that is read")
    vectors, values = _eigh.eigh(squares(name, a), lower=uplo != "U", symmetrize_input=symmetrize_input)
    return EighResult(values, vectors)
