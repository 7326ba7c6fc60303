"""Placement: a program runs on the devices of its committed arguments, on a mesh, or on the default device.

It is compiled for the orders in memory that its arguments have, or that `jit` was asked for.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from xlamini.core import AbstractMesh, Avals, Jaxpr, PartitionSpec, Values, flatten_axes, once, subjaxprs
from xlamini.core.sharding.abstract_mesh import AbstractDevice
from xlamini.interpreters.physical import is_extended
from xlamini.runtime import ArrayImpl, Mesh, NamedSharding, key_words
from xlamini.runtime.arrays.layout import Format, Order, order_asked, order_of, use
from xlamini.runtime.devices.platforms import default_device, local_devices
from xlamini.runtime.meshes.current_mesh import get_abstract_mesh, multi_device_mesh
from xlamini.runtime.meshes.named_sharding import type_sharding, with_devices, without_trailing_none
from xlamini.runtime.meshes.program_placement import AbsentPlacement, DeviceOrMesh, MeshPlacement
from xlamini.runtime.sharding import as_sharding
from xlamini.staging.compile.compile_request import Orders
from xlamini.staging.compile.lowering_target import Elsewhere
from xlamini.staging.trace.shape_struct import ShapeDtypeStruct


class Placement(NamedTuple):
    """A device or a mesh, and whether it was chosen explicitly."""

    device: DeviceOrMesh
    committed: bool


Shardings = Sequence[Any]


class Requested(NamedTuple):
    """The placements that the user and the program ask for.

    `device` is jit's; `ins` are the shardings asked for the last operands, None for that of the Array; `outs` those of
    the outputs; `inner` those that the program's equations name.
    """

    device: Any = None
    ins: Shardings = ()
    outs: Shardings = ()
    inner: Shardings = ()


NOTHING = Requested()


def placement(
    operands: Values, names: Sequence[str], fun_name: str, requested: Requested = NOTHING
) -> Placement:
    """The device or mesh on which a call of a program runs.

    Committed Arrays among the operands and what was requested decide. Errors call the last operands by `names` and the
    program `fun_name`. Raises ValueError for several different devices.
    """
    if requested.device is not None:
        return Placement(_device(requested.device), True)
    held = [None if type(x) is ArrayImpl and not x._committed else _held(x) for x in operands]
    if requested.ins:
        asked = [*[None] * (len(held) - len(requested.ins)), *requested.ins]
        held = [own if sharding is None else sharding for own, sharding in zip(held, asked, strict=True)]
    named = [s for s in (*held, *requested.outs, *requested.inner) if s is not None]
    mesh = _mesh_of(named) or multi_device_mesh()
    if mesh is None and not named:
        return Placement(default_device(), False)
    held, outs = _on_devices(held, mesh, fun_name), _on_devices(requested.outs, mesh, fun_name)
    if mesh is None:
        return _on_one_device(held, outs, names, fun_name)
    _check_devices(held, mesh, names, fun_name)
    for i, sharding in enumerate(outs):
        _check_order(f"{fun_name}: output {i}", sharding, mesh)
    return Placement(MeshPlacement(mesh, tuple(held), tuple(outs)), True)


class AskedShardings(NamedTuple):
    """The shardings of a call's arguments and outputs that are known before it is placed; None for any.

    They may be over an AbstractMesh.
    """

    ins: Shardings
    outs: Shardings


def asked_shardings(leaves: Values, ins: Shardings, jaxpr: Jaxpr, outs: Shardings) -> AskedShardings:
    """The shardings of the arguments, those asked of `jit` or else their own, and those asked for the outputs."""
    pairs = zip(leaves, ins or [None] * len(leaves), strict=True)
    return AskedShardings(
        [_own_sharding(x) if s is None else s for x, s in pairs], outs or [None] * len(jaxpr.out_avals)
    )


def _own_sharding(x: Any) -> Any:
    """The sharding of a committed Array or of a ShapeDtypeStruct, also over an AbstractMesh; else None."""
    if type(x) is not ArrayImpl:
        x = key_words(x)
    if isinstance(x, ArrayImpl):
        return without_trailing_none(x._sharding) if x._committed else None
    return x.sharding if isinstance(x, ShapeDtypeStruct) else None


def _held(x: Any) -> Any:
    """The sharding of a committed operand; None for one that may be moved.

    That of a type over an AbstractMesh is over the devices of the current mesh, if the AbstractMesh is its.
    """
    sharding = _own_sharding(x)
    if sharding is None or not _is_abstract(sharding):
        return sharding
    found = with_devices(sharding, multi_device_mesh())
    return None if _is_abstract(found) else found


def _is_abstract(sharding: Any) -> bool:
    return isinstance(sharding, NamedSharding) and isinstance(sharding.mesh, AbstractMesh)


def _mesh_of(shardings: Shardings) -> Mesh | None:
    """The mesh of the first NamedSharding that has devices."""
    for s in shardings:
        if isinstance(s, NamedSharding) and not _is_abstract(s):
            return s.mesh
    return None


def _on_devices(shardings: Shardings, mesh: Mesh | None, fun_name: str) -> Shardings:
    """The shardings asked for, those over an AbstractMesh over the devices of the mesh; ValueError if it differs."""
    if not any(map(_is_abstract, shardings)):
        return shardings
    found = [with_devices(s, mesh) for s in shardings]
    for s in filter(_is_abstract, found):
        raise ValueError(
            f"{fun_name}: {s} is asked for, over an AbstractMesh, and nothing says on which devices; set a mesh of "
            f"these axes with xlamini.set_mesh, now it is {mesh}"
        )
    return found


_PLACES = {NamedSharding, Mesh, AbstractMesh}


def _names_devices(param: Any) -> bool:
    return isinstance(param, Mesh) or (isinstance(param, NamedSharding) and isinstance(param.mesh, Mesh))


@once
def requested_by(jaxpr: Jaxpr) -> Requested:
    """The placement that a program itself asks for."""
    return Requested(inner=shardings_in(jaxpr))


def shardings_in(jaxpr: Jaxpr) -> list[NamedSharding]:
    """The shardings over devices that a program's equations name, in bodies too."""
    return [s for s in named_shardings_in(jaxpr) if _names_devices(s)]


@once
def named_shardings_in(jaxpr: Jaxpr) -> list[NamedSharding]:
    """The shardings that a program's equations name, in bodies too, also those over an AbstractMesh."""
    params = [p for eqn in jaxpr.eqns for p in eqn.params.values() if type(p) in _PLACES]
    own = [p if isinstance(p, NamedSharding) else NamedSharding(p, PartitionSpec()) for p in params]
    bodies = [inner for eqn in jaxpr.eqns if eqn.primitive.higher_order for inner in subjaxprs(eqn)]
    return list(dict.fromkeys(own + [s for inner in bodies for s in named_shardings_in(inner)]))


def _on_one_device(held: Shardings, outs: Shardings, names: Sequence[str], fun_name: str) -> Placement:
    """The device of the committed operands, or that asked for the outputs; else the default device."""
    committed, asked = _single_devices(held), _single_devices(outs)
    first, device = (committed or asked)[0]
    for i, other in committed:
        if other != device:
            raise ValueError(
                f"{fun_name}: arguments {_name(names, held, first)} and {_name(names, held, i)} are on different "
                f"devices, {device} and {other}; move one with xlamini.device_put"
            )
    for i, other in asked:
        if other != device:
            raise ValueError(
                f"{fun_name}: out_shardings asks for output {i} on {other}, but the program runs on {device}; move the "
                "result with xlamini.device_put"
            )
    return Placement(device, True)


def _single_devices(shardings: Shardings) -> list[tuple[int, Any]]:
    return [(i, s._internal_device_list[0]) for i, s in enumerate(shardings) if s is not None]


def _check_devices(shardings: Sequence[Any], mesh: Mesh, names: Sequence[str], fun_name: str) -> None:
    """ValueError for an argument on other devices than the program's."""
    wanted = set(mesh.devices.flat)
    for i, s in enumerate(shardings):
        if s is not None and s.device_set != wanted:
            raise ValueError(
                f"{fun_name}: the argument {_name(names, shardings, i)} lies on {len(s.device_set)} devices, {s}, but "
                f"the program runs on the {mesh.size} of {mesh}; move it with "
                "xlamini.device_put(x, NamedSharding(mesh, P()))"
            )
        _check_order(f"{fun_name}: the argument {_name(names, shardings, i)}", s, mesh)


def _check_order(what: str, sharding: Any, mesh: Mesh) -> None:
    """ValueError for a sharding that numbers the devices in another order: XLA runs a program in one order."""
    if sharding is not None and sharding._internal_device_list != mesh._internal_device_list:
        raise ValueError(
            f"{what} has its devices in another order than {mesh}: {list(sharding._internal_device_list)}; use one "
            "mesh, or move it with xlamini.device_put"
        )


def _name(names: Sequence[str], operands: Values, i: int) -> str:
    before = len(operands) - len(names) if hasattr(names, "__len__") else 0
    return repr(names[i - before]) if i >= before else "that it captured"


def absent_placement(asked: AskedShardings, jaxpr: Jaxpr, where: Any) -> AbsentPlacement | None:
    """The placement of a program over an AbstractMesh, where nothing names devices; None if one does.

    `where` has the platform, or the mesh's `abstract_device`; a program whose platform is not known has no such
    placement.
    """
    types = [type_sharding(a.explicit_sharding) for a in jaxpr.in_avals if a.explicit_sharding is not None]
    named = [s for s in (*asked.ins, *asked.outs, *named_shardings_in(jaxpr), *types) if isinstance(s, NamedSharding)]
    meshes = [*(s.mesh for s in named if s.mesh.axis_names), get_abstract_mesh()]
    if multi_device_mesh() is not None or _mesh_of(named) is not None or not meshes[0].axis_names:
        return None
    # Of meshes that differ in their devices alone, a type may have either: they are equal.
    given = [get_abstract_mesh(), *(s.mesh for s in (*asked.ins, *asked.outs) if isinstance(s, NamedSharding))]
    known = next((mesh.abstract_device for mesh in given if mesh.abstract_device is not None), None)
    kind = AbstractDevice("", None, where.platform) if isinstance(where, Elsewhere) else known
    if kind is None:
        return None
    mesh: Any = AbstractMesh(meshes[0].axis_sizes, meshes[0].axis_names, meshes[0].axis_types, abstract_device=kind)
    ins, outs = (tuple(s if isinstance(s, NamedSharding) else None for s in shardings) for shardings in asked)
    return AbsentPlacement(mesh, ins, outs)


def elsewhere(where: Any, placed: DeviceOrMesh, fun_name: str) -> Any:
    """The place to lower a program for: `where` if the user asked for it, such as a target's device, else `placed`.

    Raises ValueError for a program on a mesh, which is not moved to other devices.
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
    """The device or backend given to `jit`; ValueError if both are given."""
    if device is not None and backend is not None:
        raise ValueError(
            f"jit: device={device!r} and backend={backend!r} are both given; a device is on a platform, so leave "
            "backend out"
        )
    return backend if device is None else device


def _device(asked: Any) -> Any:
    """The device of a platform's name, a device or a sharding; TypeError for anything else."""
    return local_devices(backend=asked)[0] if isinstance(asked, str) else as_sharding(asked)._device


# --- orders in memory


def orders_of_call(options: Any, plan: Any, traced: Any) -> Orders | None:
    """The orders that the program of a call has: as its arguments lie, and as `jit` was asked for; None for row-major.

    `options` are those of `jit`, `plan` and `traced` are of the call.
    """
    if options.in_shardings is options.out_shardings is None and not use.any_other:
        return None
    ins = _asked("in_shardings", options.in_shardings and (options.in_shardings, None), plan.tree, "args", plan.avals)
    outs = _asked("out_shardings", options.out_shardings, traced.out_tree, "output", traced.jaxpr.out_avals)
    if not (ins or outs or use.any_other):
        return None
    captured, leaves = map(order_of, traced.captured), list(map(order_of, plan.leaves))
    pairs = zip(ins, leaves, strict=True) if ins else ()
    asked = [order if is_asked else found for (order, is_asked), found in pairs] or leaves
    given = [order for order, _ in outs] or [None] * len(traced.jaxpr.out_avals)
    found = Orders((*captured, *asked), tuple(given))
    return found if any(found.ins) or any(found.outs) else None


def _asked(name: str, places: Any, tree: Any, of: str, avals: Avals) -> list[tuple[Order, bool]]:
    """For each leaf the order that jit's parameter asks for, and whether it does; empty if no format has a layout."""
    if places is None:
        return []
    formats = flatten_axes("jit", places, tree, (name, of))
    if not any(isinstance(x, Format) and x.layout is not None for x in formats):
        return []
    return [_of_leaf(name, x, aval) for x, aval in zip(formats, avals, strict=True)]


def _of_leaf(name: str, format: Any, aval: Any) -> tuple[Order, bool]:
    order = order_asked(f"jit: {name} has", format, aval.ndim)
    if isinstance(order, tuple) and is_extended(aval):
        raise TypeError(f"jit: {name} has {format.layout} for keys, whose words have no order; leave the layout open")
    return order, isinstance(format, Format) and format.layout is not None
