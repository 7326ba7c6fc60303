"""The mesh that is set: programs run over it, and a PartitionSpec by itself is about it."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import numpy as np
from jaxlib._jax import config as _cells

from xlamini.core.api_boundary import edge_methods
from xlamini.core.memo import memoised
from xlamini.core.provenance import user_stacklevel
from xlamini.core.sharding.abstract_mesh import AbstractMesh, AxisType
from xlamini.core.sharding.partition_spec import PartitionSpec
from xlamini.core.tracer import state
from xlamini.runtime.meshes.mesh import Mesh
from xlamini.runtime.meshes.named_sharding import NamedSharding

_NO_DEVICES = Mesh(np.empty((), dtype=object), ())
_NO_AXES = AbstractMesh((), ())

# Cells that C++ dispatch sees too: a program is traced and compiled for each mesh.
_mesh = _cells.Config("mesh", None, include_in_jit_key=True, include_in_trace_context=True)
_abstract_mesh = _cells.Config("abstract_mesh", None, include_in_jit_key=True, include_in_trace_context=True)


def _swapped(mesh: Any, abstract: Any) -> tuple[Any, Any]:
    """Set both; what was set before."""
    return _mesh.swap_local(mesh), _abstract_mesh.swap_local(abstract)


def _restore(before: tuple[Any, Any]) -> None:
    _mesh.set_local(before[0])
    _abstract_mesh.set_local(before[1])


class set_mesh:
    """Set the mesh of this thread: from now on, or, as a context manager, for the block.

    Programs then run over its devices, also for arguments that lie nowhere in particular, and a PartitionSpec by
    itself, given to `jit`, `device_put`, `with_sharding_constraint` or `reshard`, stands for a NamedSharding over it.

    Args:
      mesh: a `Mesh`, or None for none.

    TypeError for what is no mesh; ValueError in a traced function, which a mesh is set around.

    >>> mesh = xlamini.make_mesh((1,), ("x",))
    >>> with set_mesh(mesh):
    ...     xlamini.device_put(xlamini.numpy.ones(2), xlamini.P("x")).sharding.spec
    P('x',)
    """

    def __init__(self, mesh: Mesh | None):
        if not isinstance(mesh, Mesh | None):
            raise TypeError(f"set_mesh: mesh must be a Mesh, got {mesh!r}; xlamini.make_mesh makes one")
        if state.builder is not None:
            raise ValueError("set_mesh cannot be used in a traced function; set the mesh around the call of it")
        mesh = None if mesh is None or mesh.empty else mesh
        self._before = _swapped(mesh, mesh and mesh.abstract_mesh)

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _restore(self._before)


class _Entered(threading.local):
    """What was set before each `with mesh:` that is going on."""

    def __init__(self) -> None:
        self.before: list[tuple[Any, Any]] = []


_entered = _Entered()


def _enter(mesh: Mesh) -> Mesh:
    """What older programs write in place of `set_mesh`; also in a traced function."""
    warnings.warn(
        "`with mesh:` is deprecated; write `with xlamini.set_mesh(mesh):`", DeprecationWarning, user_stacklevel()
    )
    _entered.before.append(_swapped(mesh, mesh.abstract_mesh))
    return mesh


def _exit(mesh: Mesh, *error: object) -> None:
    _restore(_entered.before.pop())


setattr(Mesh, "__enter__", _enter)  # noqa: B010  here, as a mesh by itself does not know of the one that is set
setattr(Mesh, "__exit__", _exit)  # noqa: B010


class use_abstract_mesh:
    """A context manager: for the block `get_abstract_mesh()` is this one. TypeError for what is no AbstractMesh.

    >>> with use_abstract_mesh(AbstractMesh((2,), ("x",))):
    ...     get_abstract_mesh().axis_names
    ('x',)
    """

    def __init__(self, mesh: AbstractMesh):
        if not isinstance(mesh, AbstractMesh):
            raise TypeError(f"use_abstract_mesh: mesh must be an AbstractMesh, got {mesh!r}; mesh.abstract_mesh is one")
        self._mesh = mesh

    def __enter__(self) -> None:
        self._before = _abstract_mesh.swap_local(None if self._mesh.empty else self._mesh)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _abstract_mesh.set_local(self._before)


@contextmanager
def manual_mesh(mesh: Mesh, manual: frozenset[Any]) -> Iterator[None]:
    """For the block, in which a program of one device is written, this mesh is set; the `manual` axes are of that type.

    It is part of what programs are traced for, as any mesh that is set.
    """
    before = _swapped(mesh, with_manual(mesh.abstract_mesh, manual))
    try:
        yield
    finally:
        _restore(before)


@memoised("sharding: meshes with manual axes", 256)
def with_manual(mesh: AbstractMesh, manual: frozenset[Any]) -> AbstractMesh:
    """The mesh with these axes of type Manual."""
    return mesh.update_axis_types(dict.fromkeys(manual, AxisType.Manual))


def get_mesh() -> Mesh:
    """The mesh that `set_mesh` set, or within shard_map that of it; one without axes if there is none.

    >>> get_mesh().empty
    True
    """
    return _mesh.value or _NO_DEVICES


def get_abstract_mesh() -> AbstractMesh:
    """The axes of the mesh that is set, or those that `use_abstract_mesh` says; none if there is no mesh.

    Within shard_map those that the function is written for are of type Manual.

    >>> get_abstract_mesh().axis_names
    ()
    """
    return _abstract_mesh.value or _NO_AXES


def mesh_set() -> Mesh | None:
    """The mesh that the user set, if there is one of several devices."""
    mesh = _mesh.value
    return None if mesh is None or mesh.size == 1 else mesh


def named(where: Any, what: str, error: type[Exception] = ValueError) -> Any:
    """A PartitionSpec as a sharding over the mesh that is set; anything else as it is.

    `what` needed it: the error, if there is no mesh, begins with it.
    """
    if not isinstance(where, PartitionSpec):
        return where
    mesh = _mesh.value or _abstract_mesh.value
    if mesh is None:
        raise error(
            f"{what} {where}, which names no mesh; write NamedSharding(mesh, {where}), or set one with "
            "xlamini.set_mesh(mesh)"
        )
    return as_here(NamedSharding(mesh, where))


def as_here(sharding: Any) -> Any:
    """A sharding whose mesh has the types of axes that hold here, within `auto_axes` and the like."""
    here = _abstract_mesh.value
    if here is None or not isinstance(sharding, NamedSharding):
        return sharding
    mesh = sharding.mesh
    if mesh.shape_tuple != here.shape_tuple or mesh.axis_types == here.axis_types:
        return sharding
    return sharding.update(mesh=mesh.update_axis_types(dict(zip(here.axis_names, here.axis_types, strict=True))))


edge_methods(set_mesh)
edge_methods(use_abstract_mesh)
