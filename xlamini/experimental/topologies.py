"""Devices to compile for, attached or not, under the names that JAX has for them; see `xlamini.target`."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core.errors import TargetError
from xlamini.core.errors.api_boundary import edge_of_face as _edge_of_face
from xlamini.experimental.mesh_utils import create_device_mesh
from xlamini.runtime import Device, Mesh
from xlamini.runtime.devices.platforms import devices
from xlamini.runtime.targets.topology import target

__all__ = ["Device", "TopologyDescription", "get_attached_topology", "get_topology_desc", "make_mesh"]


class TopologyDescription:
    """The devices of a topology.

    >>> TopologyDescription(xlamini.devices()[:1])
    TopologyDescription([CpuDevice(id=0)])
    """

    def __init__(self, devices: list[Device]):
        self.devices = devices

    def __repr__(self) -> str:
        return f"TopologyDescription({self.devices})"


def get_attached_topology(platform: str | None = None) -> TopologyDescription:
    """The devices of this machine, of the default platform or of another one.

    >>> len(get_attached_topology().devices) == xlamini.device_count()
    True
    """
    return TopologyDescription(devices(platform))


def get_topology_desc(topology_name: str = "", platform: str | None = None, **kwargs: Any) -> TopologyDescription:
    """The compile-only devices of an accelerator that need not be there, such as ("v5e:2x2", "tpu").

    `platform` is "tpu" or "gpu"; without one it is the beginning of the name, as in "tpu:v5e:2x2". TargetError, or
    PlatformError where the platform's compiler is not installed, as `xlamini.target` raises; options of a plugin
    (`kwargs`) are not supported.

    >>> try:
    ...     get_topology_desc("v5e:3x3", "tpu")
    ... except TargetError as error:
    ...     print(error)
    target: there is no 'tpu:v5e:3x3': v5e does not come in slices of 3x3; the nearest is 'tpu:v5e:2x4'
    """
    if kwargs:
        raise TargetError(f"get_topology_desc: options of plugins are not supported, got {', '.join(kwargs)}")
    spec = topology_name if platform is None else f"{platform}:{topology_name}"
    return TopologyDescription(list(target(spec).devices))


def make_mesh(
    topo: TopologyDescription,
    mesh_shape: Sequence[int],
    axis_names: tuple[str, ...],
    *,
    contiguous_submeshes: bool = False,
) -> Mesh:
    """A mesh of all devices of a topology; see `mesh_utils.create_device_mesh`.

    >>> topo = TopologyDescription(xlamini.devices()[:1])
    >>> make_mesh(topo, (1,), ("x",)).axis_names
    ('x',)
    """
    grid = create_device_mesh(tuple(mesh_shape), topo.devices, contiguous_submeshes=contiguous_submeshes)
    return Mesh(grid, axis_names)


_edge_of_face(globals())
