"""Batching rules of the user's own: `custom_vmap`, and `sequential_vmap`, which is a loop."""

from xlamini.core.api_boundary import edge_of_face as _edge_of_face
from xlamini.transforms.custom.custom_vmap import custom_vmap
from xlamini.transforms.custom.sequential_vmap import sequential_vmap

__all__ = ["custom_vmap", "sequential_vmap"]

_edge_of_face(globals())
