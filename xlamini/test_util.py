"""Help for tests: derivatives against finite differences."""

from xlamini.core.api_boundary import edge_of_face as _edge_of_face
from xlamini.transforms.derivatives.check_grads import check_grads, check_jvp, check_vjp

__all__ = ["check_grads", "check_jvp", "check_vjp"]

_edge_of_face(globals())
