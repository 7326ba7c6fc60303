"""Solvers for matrices that are known by their products, under the names JAX users know as `jax.scipy.sparse`."""

from xlamini.scipy.sparse import linalg as linalg
