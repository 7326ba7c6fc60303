"""Decompositions of matrices and solvers, under the names JAX users know as `jax.lax.linalg`."""

# ruff: noqa: I001
from xlamini.core.edges import edge_of_face as _edge_of_face
from xlamini.primitives.linalg.eig import EigImplementation as EigImplementation, eig as eig, eig_p as eig_p
from xlamini.primitives.linalg.eigh import EighImplementation as EighImplementation, eigh as eigh, eigh_p as eigh_p
from xlamini.primitives.linalg.hessenberg import hessenberg as hessenberg, hessenberg_p as hessenberg_p
from xlamini.primitives.linalg.schur import schur as schur, schur_p as schur_p
from xlamini.primitives.linalg.svd import SvdAlgorithm as SvdAlgorithm, svd as svd, svd_p as svd_p
from xlamini.primitives.linalg.tridiagonal import tridiagonal as tridiagonal, tridiagonal_p as tridiagonal_p

_edge_of_face(globals())
