"""Linear algebra, under the names JAX users know as `jax.scipy.linalg`."""

# ruff: noqa: I001
# fmt: off
from xlamini.core.edges import edge_of_face as _edge_of_face
from xlamini.scipy.linalg.special_matrices import (
    block_diag as block_diag, circulant as circulant, companion as companion,
    convolution_matrix as convolution_matrix, dft as dft, fiedler as fiedler,
    fiedler_companion as fiedler_companion, hadamard as hadamard, hankel as hankel, helmert as helmert,
    hilbert as hilbert, invhilbert as invhilbert, invpascal as invpascal, leslie as leslie, pascal as pascal,
    toeplitz as toeplitz,
)

_edge_of_face(globals())
