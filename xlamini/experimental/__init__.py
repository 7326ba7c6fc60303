"""What JAX has under `jax.experimental`, for programs that import it from there."""

from xlamini.core.api_boundary import edge_of_face as _edge_of_face
from xlamini.transforms.callbacks.io_callback import io_callback as io_callback

_edge_of_face(globals())

__all__ = ["io_callback"]
