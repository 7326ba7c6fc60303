"""Looking into programs as they run: `debug.print`, `debug.callback`."""

from xlamini.core.edges import edge_of_face as _edge_of_face
from xlamini.transforms.callbacks.debug import callback as callback
from xlamini.transforms.callbacks.debug import debug_print as print

_edge_of_face(globals())

__all__ = ["callback", "print"]
