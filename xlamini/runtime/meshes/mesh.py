"""Mesh: devices in a grid with named axes."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from jaxlib import _jax
from numpy.typing import NDArray

from xlamini.core import AbstractMesh, AxisType
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.core.errors.frames import user_stacklevel
from xlamini.core.sharding.abstract_mesh import (
    AbstractDevice,
    AxesOfMesh,
    AxisName,
    changed_types,
    checked_names,
    checked_types,
)
from xlamini.runtime.devices.platforms import Device, devices as all_devices


class Mesh(AxesOfMesh):
    """A mesh: devices in a grid with named axes.

    Args:
      devices: an array of devices, or a nested list.
      axis_names: the names of its axes, all different.
      axis_types: an `AxisType` for each of them, or one for all; by default the compiler decides.

    Raises ValueError if the numbers of axes, names and types differ, or a device occurs twice.

    >>> mesh = Mesh(xlamini.devices()[:1], ("x",))
    >>> dict(mesh.shape)
    {'x': 1}
    """

    axis_sizes: tuple[int, ...]
    devices: NDArray[Any]

    @api_boundary
    def __init__(
        self,
        devices: Any,
        axis_names: AxisName | Sequence[AxisName],
        axis_types: AxisType | Sequence[AxisType] | None = None,
    ):
        grid = np.array(devices, dtype=object)
        grid.flags.writeable = False
        self.devices, self.axis_sizes = grid, grid.shape
        _check_devices(grid)
        self.axis_names: tuple[AxisName, ...] = checked_names("Mesh", axis_names, grid.ndim)
        self.axis_types: tuple[AxisType, ...] = checked_types("Mesh", axis_types, grid.ndim)
        for device in grid.flat:
            if isinstance(device, str | int | float):
                raise TypeError(f"Mesh: devices must be devices, got {device!r}; see xlamini.devices()")
        if len(set(grid.flat)) < grid.size:
            raise ValueError("Mesh: a device is there twice; list each device once")
        self._hash = hash((tuple(grid.flat), self.shape_tuple, self.axis_types))

    @cached_property
    def abstract_mesh(self) -> AbstractMesh:
        """The mesh's axes without its devices, of which it tells the kind."""
        kind = _kind_of(self.devices)
        return AbstractMesh(self.axis_sizes, self.axis_names, self.axis_types, abstract_device=kind)

    def update(
        self,
        devices: Any = None,
        axis_names: AxisName | Sequence[AxisName] | None = None,
        axis_types: AxisType | Sequence[AxisType] | None = None,
    ) -> Mesh:
        """A copy of the mesh with these fields replaced; ValueError if axes, names and types differ in number."""
        grid = self.devices if devices is None else devices
        names = self.axis_names if axis_names is None else axis_names
        return Mesh(grid, names, self.axis_types if axis_types is None else axis_types)

    def update_axis_types(self, name_to_type: Mapping[AxisName, AxisType]) -> Mesh:
        """A copy of the mesh with other axis types; KeyError for an unknown axis name."""
        return self.update(axis_types=changed_types(self, name_to_type))

    @cached_property
    def _internal_device_list(self) -> Any:
        return _jax.DeviceList(tuple(self.devices.flat))

    @property
    def device_ids(self) -> np.ndarray:
        """The ids of the mesh's devices, in the same grid."""
        return np.array([d.id for d in self.devices.flat], int).reshape(self.axis_sizes)

    @property
    def local_devices(self) -> list[Device]:
        """The mesh's devices that belong to this process."""
        return list(self._internal_device_list.addressable_device_list)

    @property
    def local_mesh(self) -> Mesh:
        """The part of the mesh whose devices belong to this process; a ValueError if these are no grid."""
        local = np.isin(self.device_ids, [device.id for device in self.local_devices])
        part = self.devices[np.ix_(*map(np.unique, np.nonzero(local)))]
        if part.size != len(self.local_devices):
            raise ValueError(f"Mesh.local_mesh: the {len(self.local_devices)} devices of this process are no grid")
        return self if part.size == self.size else Mesh(part, self.axis_names, self.axis_types)

    @property
    def is_multi_process(self) -> bool:
        """Whether the mesh has devices of other processes."""
        return len(self.local_devices) != self.size

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mesh):
            return NotImplemented
        if self is other or self._hash != other._hash:
            return self is other
        mine, others = ((m.axis_names, m.axis_types, m.axis_sizes, *m.devices.flat) for m in (self, other))
        return mine == others

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> Any:
        return Mesh, (self.devices, self.axis_names, self.axis_types)

    def __copy__(self) -> Mesh:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> Mesh:
        return self

    def __repr__(self) -> str:
        sizes = f"axis_sizes={self.axis_sizes}, axis_names={self.axis_names}"
        return f"Mesh({sizes}, axis_types={self.axis_types})"

    def __str__(self) -> str:
        return f"Mesh({self._axes_text()})"


AnyMesh = Mesh | AbstractMesh
MeshOrAxes = TypeVar("MeshOrAxes", Mesh, AbstractMesh)


def with_axes(mesh: MeshOrAxes, axes: AbstractMesh) -> MeshOrAxes:
    """The devices of a mesh in a grid with other axes; ValueError if the grid has another number of devices."""
    if mesh.shape_tuple == axes.shape_tuple:
        return mesh
    if mesh.size != axes.size:
        raise ValueError(f"{axes} has {axes.size} devices, but {mesh} has {mesh.size}; the sizes must be equal")
    if isinstance(mesh, AbstractMesh):
        return axes
    return mesh.update(mesh.devices.reshape(axes.axis_sizes), axes.axis_names, axes.axis_types)


def _kind_of(grid: np.ndarray) -> AbstractDevice | None:
    """The kind of the devices; None if there are none, or several kinds."""
    kinds = {AbstractDevice(d.device_kind, getattr(d, "num_cores", None), d.platform) for d in grid.flat if d}
    return kinds.pop() if len(kinds) == 1 else None


def _check_devices(grid: np.ndarray) -> None:
    for x in grid.flat if grid.ndim else ():
        if not hasattr(x, "process_index"):
            raise TypeError(f"Mesh: devices must be devices, got {x!r} of type {type(x).__name__}; see xlamini.devices")


def make_mesh(
    axis_sizes: Sequence[int] = (),
    axis_names: AxisName | Sequence[AxisName] = (),
    axis_types: AxisType | Sequence[AxisType] | None = None,
    *,
    devices: Sequence[Device] | None = None,
    axis_shapes: Sequence[int] | None = None,
) -> Mesh:
    """A mesh over the first devices of the default platform, in their order.

    Args:
      axis_sizes: the size of each axis.
      axis_names: their names; a string is one name.
      axis_types: an `AxisType` for each, or one for all; by default Explicit: the types of values show how they are
        sharded. Along an axis of type Auto the compiler alone decides.
      devices: the devices to use instead.
      axis_shapes: the deprecated name of `axis_sizes`.

    Raises ValueError if there are fewer devices than the mesh needs, or an axis has size 0.

    >>> make_mesh((1, 1), ("x", "y")).axis_names
    ('x', 'y')
    """
    if axis_shapes is not None:
        warnings.warn("make_mesh: axis_shapes is now named axis_sizes", DeprecationWarning, user_stacklevel())
        axis_sizes = axis_shapes
    available = all_devices() if devices is None else list(devices)
    count = math.prod(axis_sizes)
    if min(axis_sizes, default=1) < 1:
        raise ValueError(f"make_mesh: axis_sizes {tuple(axis_sizes)}: each axis needs a size of 1 or more")
    if len(available) < count:
        raise ValueError(
            f"make_mesh: axis_sizes {tuple(axis_sizes)} needs {count} devices, but there are {len(available)}; on a "
            f"CPU XLAMINI_NUM_CPU_DEVICES={count} makes as many"
        )
    grid = np.array(available[:count], dtype=object).reshape(tuple(axis_sizes))
    return Mesh(grid, axis_names, AxisType.Explicit if axis_types is None else axis_types)
