"""Geometry, under the names of `jax.scipy.spatial`."""
from xlamini.scipy.spatial import transform as transform
