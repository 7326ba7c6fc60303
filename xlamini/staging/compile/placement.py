"""Where a program runs: where its committed arguments are, over a mesh that is named, or on the default device."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from xlamini.core.jaxpr import Jaxpr, once, subjaxprs
from xlamini.core.sharding.partition_spec import PartitionSpec
from xlamini.runtime.devices.platforms import default_device, local_devices
from xlamini.runtime.keys import key_words
from xlamini.runtime.meshes.current_mesh import multi_device_mesh
from xlamini.runtime.meshes.mesh import Mesh
from xlamini.runtime.meshes.named_sharding import NamedSharding, without_trailing_none
from xlamini.runtime.meshes.program_placement import MeshPlacement, Place
from xlamini.runtime.sharding import as_sharding
from xlamini.runtime.to_device import ArrayImpl
from xlamini.staging.trace.shape_struct import ShapeDtypeStruct


class Placement(NamedTuple):
    """A device or a mesh, and whether it was chosen explicitly."""

    device: Place
    committed: bool


Shardings = Sequence[Any]


def placement(
    operands: Sequence[Any],
    names: Sequence[str],
    fun_name: str,
    asked: Any = None,
    ins: Shardings = (),
    outs: Shardings = (),
    inner: Shardings = (),
) -> Placement:
    """Where a call of a program runs.

    Args:
      operands: its inputs; committed Arrays among them say where.
      names: what the last of them are called in errors.
      fun_name: what the program is called there.
      asked: the device that the user named.
      ins: the shardings that the user wants the last operands in, None for those of the Arrays.
      outs: the same for the outputs.
      inner: the shardings that the program itself names.

    ValueError if that is on different devices.
    """
    if asked is not None:
        return Placement(_device(asked), True)
    arrays = map(key_words, operands)
    held = list(map(_held, arrays))
    if ins:
        given = [*[None] * (len(held) - len(ins)), *ins]
        held = [own if wanted is None else wanted for own, wanted in zip(held, given, strict=True)]
    mesh = _mesh_of([*held, *outs, *inner]) or multi_device_mesh()
    if mesh is None:
        return _on_one_device(held, names, fun_name)
    _check_devices(held, mesh, names, fun_name)
    return Placement(MeshPlacement(mesh, tuple(held), tuple(outs)), True)


def _held(x: Any) -> Any:
    """Where an operand lies, if that was chosen; None for one that may be anywhere."""
    if isinstance(x, ArrayImpl):
        return without_trailing_none(x._sharding) if x._committed else None
    sharding = x.sharding if isinstance(x, ShapeDtypeStruct) else None
    return sharding if _names_devices(sharding) else None


def _mesh_of(shardings: Shardings) -> Mesh | None:
    """The mesh that the first of these names."""
    for s in shardings:
        if type(s) is NamedSharding:
            return s.mesh
    return None


_PLACES = {NamedSharding, Mesh}


def _names_devices(param: Any) -> bool:
    return isinstance(param, Mesh) or (isinstance(param, NamedSharding) and isinstance(param.mesh, Mesh))


@once
def shardings_in(jaxpr: Jaxpr) -> list[NamedSharding]:
    """The shardings that a program's equations name, in bodies too."""
    found = [p for eqn in jaxpr.eqns for p in eqn.params.values() if type(p) in _PLACES]
    own = [NamedSharding(p, PartitionSpec()) if isinstance(p, Mesh) else p for p in found if _names_devices(p)]
    inner = [s for eqn in jaxpr.eqns if eqn.primitive.higher_order for j in subjaxprs(eqn) for s in shardings_in(j)]
    return list(dict.fromkeys(own + inner))


def _on_one_device(held: Sequence[Any], names: Sequence[str], fun_name: str) -> Placement:
    committed = [(i, s._internal_device_list[0]) for i, s in enumerate(held) if s is not None]
    if not committed:
        return Placement(default_device(), False)
    first, device = committed[0]
    for i, other in committed:
        if other != device:
            raise ValueError(
                f"{fun_name}: arguments {_name(names, held, first)} and {_name(names, held, i)} are on different "
                f"devices, {device} and {other}; move one with xlamini.device_put"
            )
    return Placement(device, True)


def _check_devices(shardings: Sequence[Any], mesh: Mesh, names: Sequence[str], fun_name: str) -> None:
    """ValueError for an argument that lies on other devices than the program's."""
    wanted = set(mesh.devices.flat)
    for i, s in enumerate(shardings):
        if s is not None and s.device_set != wanted:
            raise ValueError(
                f"{fun_name}: the argument {_name(names, shardings, i)} lies on {len(s.device_set)} devices, {s}, but "
                f"the program runs on the {mesh.size} of {mesh}; move it with "
                "xlamini.device_put(x, NamedSharding(mesh, P()))"
            )


def _name(names: Sequence[str], operands: Sequence[Any], i: int) -> str:
    before = len(operands) - len(names) if hasattr(names, "__len__") else 0
    return repr(names[i - before]) if i >= before else "that it captured"


def elsewhere(where: Any, placed: Place, fun_name: str) -> Any:
    """Where a program is lowered for if the user asked for another place, such as a target's device.

    ValueError for one whose shardings name another mesh: a mesh is not moved to other devices.
    """
    if where is None or getattr(where, "client", None) is placed.client:
        return placed
    if isinstance(placed, MeshPlacement):
        raise ValueError(
            f"{fun_name} runs on {placed.mesh} of {placed.platform} devices; make the mesh of target.devices to "
            "compile it for a target"
        )
    return where


def asked_place(device: Any, backend: str | None) -> Any:
    """What `jit` was told of the place; ValueError if that is two things."""
    if device is not None and backend is not None:
        raise ValueError(
            f"jit: device={device!r} and backend={backend!r} are both given; a device is on a platform, so leave "
            "backend out"
        )
    return backend if device is None else device


def _device(asked: Any) -> Any:
    """The device that a platform's name, a device or a sharding stands for; TypeError for anything else."""
    return local_devices(backend=asked)[0] if isinstance(asked, str) else as_sharding(asked)._device
