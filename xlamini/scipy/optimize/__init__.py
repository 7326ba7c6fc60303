"""Minima of functions, under the names of `jax.scipy.optimize`."""
from xlamini.core.api_boundary import edge_of_face as _edge_of_face
from xlamini.scipy.optimize.minimize import OptimizeResults as OptimizeResults
from xlamini.scipy.optimize.minimize import minimize as minimize

_edge_of_face(globals())
