"""The axes of shard_map's mesh as named axes, while its program is traced or rewritten."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from xlamini.core.named_axes import axes_here, named_axis
from xlamini.core.primitive import Axis
from xlamini.runtime.meshes.current_mesh import manual_mesh


@contextmanager
def manual_axes(params: dict[str, Any]) -> Iterator[None]:
    """Let collectives refer to the `manual` axes of the `mesh`; with `check_vma` what varies along them is tracked.

    Within a shard_map around they are manual besides those of that one, of the same mesh.
    """
    mesh, manual, checked = params["mesh"], params["manual"], params["check_vma"]
    with manual_mesh(mesh, manual | manual_here()), ExitStack() as stack:
        for name in mesh.axis_names:
            if name in manual:
                stack.enter_context(named_axis(Axis(mesh.shape[name], name, True, checked)))
        yield


def manual_here() -> frozenset[Any]:
    """The axes that what is traced or rewritten here is written for one device along."""
    return frozenset(axis.name for axis in axes_here() if axis.manual)
