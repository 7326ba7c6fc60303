"""Batching rules of the user's own: `custom_vmap`, `sequential_vmap`."""

from xlamini.core.edges import edge_of_face as _edge_of_face
from xlamini.transforms.custom.custom_vmap import custom_vmap

__all__ = ["custom_vmap"]

_edge_of_face(globals())
