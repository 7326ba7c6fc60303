"""The current mesh: programs run over it, and a bare PartitionSpec refers to it."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any

import numpy as np
from jaxlib._jax import config as _cells

from xlamini.core import (
    AbstractMesh,
    AxisType,
    PartitionSpec,
    ShapedArray,
    api_boundary_methods,
    memoised,
    user_stacklevel,
)
from xlamini.core.tracing.state import state
from xlamini.runtime.arrays.layout import Format, sharding_of
from xlamini.runtime.meshes.mesh import Mesh, with_axes
from xlamini.runtime.meshes.named_sharding import NamedSharding, type_sharding

_NO_DEVICES = Mesh(np.empty((), dtype=object), ())
_NO_AXES = AbstractMesh((), ())

# C++ config cells, which are part of the dispatch key: a program is traced and compiled for each mesh.
_mesh = _cells.Config("mesh", None, include_in_jit_key=True, include_in_trace_context=True)
_abstract_mesh = _cells.Config("abstract_mesh", None, include_in_jit_key=True, include_in_trace_context=True)


def _swap(mesh: Any, abstract: Any) -> tuple[Any, Any]:
    """Set both cells; returns their previous values."""
    return _mesh.swap_local(mesh), _abstract_mesh.swap_local(abstract)


def _restore(before: tuple[Any, Any]) -> None:
    _mesh.set_local(before[0])
    _abstract_mesh.set_local(before[1])


class set_mesh:
    """Set the current mesh of this thread: from now on, or, as a context manager, for the block.

    Programs then run over its devices, also for uncommitted arguments, and a bare PartitionSpec given to `jit`,
    `device_put`, `with_sharding_constraint` or `reshard` means a NamedSharding over this mesh.

    Args:
      mesh: a `Mesh`, or None to unset it.

    Raises TypeError for a value that is no mesh; ValueError inside a traced function: set the mesh around its call.

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
        self._before = _swap(mesh, mesh and mesh.abstract_mesh)

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        _restore(self._before)


class _Entered(threading.local):
    """The stack of previous values for the active `with mesh:` blocks."""

    def __init__(self) -> None:
        self.before: list[tuple[Any, Any]] = []


_entered = _Entered()


def _enter(mesh: Mesh) -> Mesh:
    """Enter `with mesh:`, JAX's deprecated form of `set_mesh`; allowed in a traced function too."""
    warnings.warn(
        "`with mesh:` is deprecated; write `with xlamini.set_mesh(mesh):`", DeprecationWarning, user_stacklevel()
    )
    _entered.before.append(_swap(mesh, mesh.abstract_mesh))
    return mesh


def _exit(mesh: Mesh, *error: object) -> None:
    _restore(_entered.before.pop())


setattr(Mesh, "__enter__", _enter)  # noqa: B010  set here, because mesh.py must not depend on the current mesh
setattr(Mesh, "__exit__", _exit)  # noqa: B010


class use_abstract_mesh:
    """A context manager that sets `get_abstract_mesh()` for the block. TypeError for a value that is no AbstractMesh.

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
    """A context manager for per-device code (shard_map): sets the mesh, whose `manual` axes become AxisType.Manual.

    The mesh is part of the trace context, as any current mesh.
    """
    before = _swap(mesh, with_manual(mesh.abstract_mesh, manual))
    try:
        yield
    finally:
        _restore(before)


@memoised("sharding: meshes with manual axes", 256)
def with_manual(mesh: AbstractMesh, manual: frozenset[Any]) -> AbstractMesh:
    """The mesh with these axes of type Manual."""
    return mesh.update_axis_types(dict.fromkeys(manual, AxisType.Manual))


def get_mesh() -> Mesh:
    """The current mesh, from `set_mesh` or the enclosing shard_map; an empty mesh if there is none.

    >>> get_mesh().empty
    True
    """
    return _mesh.value or _NO_DEVICES


def get_abstract_mesh() -> AbstractMesh:
    """The axes of the current mesh, or of `use_abstract_mesh`; an empty mesh if there is none.

    Inside shard_map the axes that the function maps over have type Manual.

    >>> get_abstract_mesh().axis_names
    ()
    """
    return _abstract_mesh.value or _NO_AXES


def sharding_of_type(aval: ShapedArray) -> NamedSharding:
    """The sharding of a value of this type (`aval.sharding`), along axes of type Explicit.

    Of a value that is not split it is one over the current mesh.
    """
    split = aval.explicit_sharding and aval.explicit_sharding.on(aval.explicit_sharding.mesh)
    return type_sharding(split) or NamedSharding(get_abstract_mesh(), PartitionSpec(*[None] * aval.ndim))


def multi_device_mesh() -> Mesh | None:
    """The current mesh if it has several devices, else None."""
    mesh = _mesh.value
    return None if mesh is None or mesh.size == 1 else mesh


def named(where: Any, what: str, error: type[Exception] = ValueError) -> Any:
    """Resolve a PartitionSpec to a sharding over the current mesh, and a Format to its sharding.

    Any other value is returned unchanged. Without a mesh it raises `error`, whose message begins with `what`.
    """
    if isinstance(where, Format):
        return sharding_of(where, what)
    if not isinstance(where, PartitionSpec):
        return where
    mesh, here = _mesh.value, _abstract_mesh.value
    if mesh is not None and here is not None:
        mesh = with_axes(mesh, here)
    mesh = mesh or here
    if mesh is None:
        raise error(
            f"{what} {where}, which names no mesh; write NamedSharding(mesh, {where}), or set one with "
            "xlamini.set_mesh(mesh)"
        )
    return as_here(NamedSharding(mesh, where))


def as_here(sharding: Any) -> Any:
    """A sharding whose mesh has the axis types of the current context, as inside `auto_axes`."""
    here = _abstract_mesh.value
    if here is None or not isinstance(sharding, NamedSharding):
        return sharding
    mesh = sharding.mesh
    if mesh.shape_tuple != here.shape_tuple or mesh.axis_types == here.axis_types:
        return sharding
    return sharding.update(mesh=mesh.update_axis_types(dict(zip(here.axis_names, here.axis_types, strict=True))))


api_boundary_methods(set_mesh)
api_boundary_methods(use_abstract_mesh)
