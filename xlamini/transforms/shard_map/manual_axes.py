"""The manual axes of a shard_map as named axes, while its program is traced or rewritten."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from xlamini.core import Axis, Params, named_axis
from xlamini.core.tracing.state import state
from xlamini.runtime.meshes.current_mesh import manual_mesh


@contextmanager
def manual_axes(params: Params) -> Iterator[None]:
    """Let collectives refer to the `manual` axes of the `mesh`; with `check_vma` values track the axes they vary along.

    In a nested shard_map the manual axes of the outer one stay manual.
    """
    mesh, manual, checked = params["mesh"], params["manual"], params["check_vma"]
    with manual_mesh(mesh, manual | manual_here()), ExitStack() as stack:
        for name in mesh.axis_names:
            if name in manual:
                stack.enter_context(named_axis(Axis(mesh.shape[name], name, True, checked)))
        yield


def manual_here() -> frozenset[Any]:
    """The manual axes of the program that is being traced or rewritten."""
    return frozenset(axis.name for axis in state.axes if axis.manual)
