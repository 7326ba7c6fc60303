"""ravel_pytree: a pytree of arrays as one vector, and the inverse function."""

from xlamini.core.api_boundary import edge_of_face as _edge_of_face
from xlamini.numpy.tree_vector import ravel_pytree as ravel_pytree

__all__ = ["ravel_pytree"]

_edge_of_face(globals())
