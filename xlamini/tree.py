"""Functions on pytrees: `tree.map(f, params)`, `tree.leaves(params)`, ..."""

from xlamini.core.api_boundary import edge_of_face as _edge_of_face
from xlamini.core.pytree import static
from xlamini.core.pytree import tree_all as all
from xlamini.core.pytree import tree_broadcast as broadcast
from xlamini.core.pytree import tree_flatten as flatten
from xlamini.core.pytree import tree_flatten_with_path as flatten_with_path
from xlamini.core.pytree import tree_leaves as leaves
from xlamini.core.pytree import tree_leaves_with_path as leaves_with_path
from xlamini.core.pytree import tree_map as map
from xlamini.core.pytree import tree_map_with_path as map_with_path
from xlamini.core.pytree import tree_reduce as reduce
from xlamini.core.pytree import tree_reduce_associative as reduce_associative
from xlamini.core.pytree import tree_structure as structure
from xlamini.core.pytree import tree_transpose as transpose
from xlamini.core.pytree import tree_unflatten as unflatten

__all__ = [
    "all",
    "broadcast",
    "flatten",
    "flatten_with_path",
    "leaves",
    "leaves_with_path",
    "map",
    "map_with_path",
    "reduce",
    "reduce_associative",
    "static",
    "structure",
    "transpose",
    "unflatten",
]

_edge_of_face(globals())
