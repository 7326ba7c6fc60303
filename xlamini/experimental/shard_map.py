"""`shard_map` under the name it had before, with its older argument `check_rep`."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xlamini.core.errors.api_boundary import edge_of_face as _edge_of_face
from xlamini.runtime import Mesh
from xlamini.transforms.shard_map.api import shard_map as _shard_map


def shard_map(
    f: Callable[..., Any], mesh: Mesh, in_specs: Any, out_specs: Any, check_rep: bool = True
) -> Callable[..., Any]:
    """`xlamini.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep)`.

    >>> mesh = xlamini.make_mesh((1,), ("x",))
    >>> shard_map(lambda x: 2 * x, mesh, xlamini.P("x"), xlamini.P("x"))(xlamini.numpy.arange(3))
    Array([0, 2, 4], dtype=int32)
    """
    return _shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep)


_edge_of_face(globals())
