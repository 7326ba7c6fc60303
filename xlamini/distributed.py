"""Processes that compute together: start-up, shutdown, and whether this process takes part."""

from xlamini.core.api_boundary import edge_of_face as _edge_of_face
from xlamini.runtime.processes.startup import initialize as initialize
from xlamini.runtime.processes.startup import is_initialized as is_initialized
from xlamini.runtime.processes.startup import shutdown as shutdown

__all__ = ["initialize", "is_initialized", "shutdown"]

_edge_of_face(globals())
