"""The shardings of an exported function: over meshes without devices, so that it can be called on any devices."""
from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from xlamini.core import AbstractMesh, Avals, LoadError, PartitionSpec, ShapedArray, ShardingError
from xlamini.core.sharding.abstract_mesh import parts_along
from xlamini.core.sizes.expression import is_less
from xlamini.core.sizes.values import evaluate
from xlamini.runtime import Mesh, NamedSharding
from xlamini.runtime.meshes.current_mesh import multi_device_mesh
from xlamini.runtime.meshes.mesh import AnyMesh
from xlamini.runtime.meshes.named_sharding import split_in_type, type_sharding
from xlamini.runtime.meshes.program_placement import named_sharding
from xlamini.staging.aot import placement_json
from xlamini.staging.compile.placement import AskedShardings, named_shardings_in
from xlamini.staging.trace.tracing import TracedCall

Shardings = tuple[NamedSharding | None, ...]


class ExportPlacement(NamedTuple):
    """The mesh that a program is exported for, None for one device, with the shardings of its inputs and outputs."""

    mesh: AnyMesh | None
    ins: Shardings
    outs: Shardings

    @property
    def device_count(self) -> int:
        """The number of devices."""
        return 1 if self.mesh is None else self.mesh.size

    def of_inputs(self, count: int) -> Shardings:
        """The shardings of the program's inputs; None where the caller chooses."""
        return self.ins

    def of_outputs(self, count: int) -> Shardings:
        """The shardings of the program's outputs; None where the compiler chooses."""
        return self.outs


def mesh_of(call: TracedCall, asked: AskedShardings) -> AnyMesh | None:
    """The mesh to export a call for: the first with devices, which orders them, else the first AbstractMesh.

    It is sought in the arguments, the options of `jit` and the program itself; without any, it is the current mesh.
    """
    meshes = [s.mesh for s in (*asked.ins, *asked.outs, *_inner(call)) if _is_over_axes(s)]
    concrete = next((mesh for mesh in meshes if isinstance(mesh, Mesh)), None)
    return concrete or (meshes[0] if meshes else multi_device_mesh())


def _inner(call: TracedCall) -> list[NamedSharding]:
    """The shardings in a program and in the types of what it captures."""
    types = [type_sharding(a.explicit_sharding) for a in call.trace.jaxpr.in_avals]
    return [s for s in (*named_shardings_in(call.trace.jaxpr), *types) if s is not None and _is_over_axes(s)]


def _is_over_axes(sharding: Any) -> bool:
    return isinstance(sharding, NamedSharding) and not sharding.mesh.empty


def placement_of(call: TracedCall, asked: AskedShardings, mesh: AnyMesh | None) -> ExportPlacement:
    """The placement of a call over a mesh.

    Raises ValueError for a sharding over another number of devices or another order, and ShardingError for an array
    that cannot be split as asked.
    """
    ins, outs = (tuple(s if _is_over_axes(s) else None for s in shardings) for shardings in asked)
    if mesh is None:
        return ExportPlacement(None, ins, outs)
    for what, sharding, aval in _described(call, ins, outs):
        _check(what, sharding, aval, mesh)
    for sharding in _inner(call):
        _check_size(f"a value of {call.name}", sharding, mesh)
    pairs = zip(outs, call.trace.jaxpr.out_avals, strict=True)
    return ExportPlacement(mesh, ins, tuple(_of_type(a, mesh) if s is None else s for s, a in pairs))


def _described(call: TracedCall, ins: Shardings, outs: Shardings) -> Iterator[tuple[str, NamedSharding, ShapedArray]]:
    """Each sharding with a description for messages and the type of its array."""
    names, out_avals = call.trace.names, call.trace.jaxpr.out_avals
    for i, (sharding, aval) in enumerate(zip(ins, call.avals, strict=True)):
        if sharding is not None:
            yield f"the argument {names[i]!r} of {call.name}", sharding, aval
    for i, (sharding, aval) in enumerate(zip(outs, out_avals, strict=True)):
        if sharding is not None:
            yield f"output {i} of {call.name}", sharding, aval


def _check(what: str, sharding: NamedSharding, aval: ShapedArray, mesh: Any) -> None:
    _check_size(what, sharding, mesh)
    ordered = isinstance(sharding.mesh, Mesh) and list(sharding.mesh.devices.flat) == list(mesh.devices.flat)
    if isinstance(sharding.mesh, Mesh) and not ordered:
        raise ValueError(
            f"export: {what} is sharded over other devices than {mesh}, or over the same in another order; use one "
            "mesh, or an AbstractMesh"
        )
    try:
        sharding.shard_shape(aval.shape)
    except ShardingError as error:
        raise ShardingError(f"export: {what}: {error}") from None


def _check_size(what: str, sharding: NamedSharding, mesh: Any) -> None:
    if sharding.mesh.size != mesh.size:
        raise ValueError(
            f"export: {what} is sharded over {sharding.mesh.size} devices, but the program runs on the {mesh.size} of "
            f"{mesh}; use meshes of one size"
        )


def _of_type(aval: ShapedArray, mesh: Any) -> NamedSharding | None:
    """The sharding in the type of an output, if the mesh has explicit axes."""
    if not mesh.explicit_axes:
        return None
    return type_sharding(aval.explicit_sharding) or NamedSharding(
        mesh.abstract_mesh, PartitionSpec(*[None] * aval.ndim)
    )


def check_splits(names: Sequence[str], shardings: Shardings, avals: Avals, sizes: Mapping[str, Any]) -> None:
    """ShardingError unless all symbolic sizes, of these values, can be split evenly."""
    for name, sharding, aval in zip(names, shardings, avals, strict=True):
        if sharding is None:
            continue
        for d, along in enumerate(sharding.spec.names_of(aval.ndim)):
            _check_split(f"{name}.shape[{d}]", aval.shape[d], sharding.mesh, along, sizes)


def _check_split(what: str, size: Any, mesh: Any, axes: Sequence[Any], sizes: Mapping[str, Any]) -> None:
    parts, found = parts_along(mesh, axes), evaluate(size, sizes)
    if is_less(0, found % parts):
        along = ", ".join(map(repr, axes))
        raise ShardingError(
            f"{what} is {size} = {found}, which cannot be split into {parts} parts along the mesh axis {along}; pass a "
            f"multiple of {parts}. symbolic_shape(..., constraints=['mod({size}, {parts}) == 0']) promises that"
        )


def without_devices(shardings: Shardings) -> Shardings:
    """The shardings over the same axes, without devices."""
    return tuple(s and NamedSharding(s.mesh.abstract_mesh, s.spec) for s in shardings)


def of_cotangents(shardings: Shardings) -> Shardings:
    """The shardings of cotangents: unreduced where the primal is reduced, and the reverse."""
    return tuple(s and s.update(spec=s.spec.to_ct_spec()) for s in shardings)


def typed(avals: Avals, shardings: Shardings) -> tuple[ShapedArray, ...]:
    """The types of arrays with these shardings, whose part along explicit axes they show."""
    pairs = zip(avals, shardings, strict=True)
    return tuple(a.with_sharding(split_in_type(s, a.ndim)) for a, s in pairs)


def over(name: str, sharding: NamedSharding | None, mesh: Any, ndim: int) -> NamedSharding | None:
    """The equivalent of an exported sharding over a mesh of as many devices; ShardingError if there is none."""
    if sharding is None:
        return None
    if sharding.mesh.shape_tuple == mesh.shape_tuple:
        return NamedSharding(mesh, sharding.spec)
    try:
        if sharding.spec.unreduced or sharding.spec.reduced:
            raise ShardingError("partial sums are along axes with names")
        return named_sharding(sharding._to_xla_hlo_sharding(ndim), mesh, ndim)
    except ShardingError:
        axes = dict(sharding.mesh.shape_tuple)
        raise ShardingError(
            f"{name} was exported for {sharding.spec} over the axes {axes}, which no PartitionSpec of {mesh} says; use "
            "a mesh with these axes"
        ) from None


def written(ins: Shardings, outs: Shardings) -> dict[str, Any]:
    """The fields of a file's header; a sharding is the number of its mesh and its spec.

    ValueError for names of axes that are no strings.
    """
    meshes = list(dict.fromkeys(s.mesh for s in (*ins, *outs) if s is not None))

    def each(shardings: Shardings) -> list[Any]:
        return [s and [meshes.index(s.mesh), placement_json.written_spec(s.spec)] for s in shardings]

    return {
        "meshes": [placement_json.written_axes(mesh) for mesh in meshes],
        "in_shardings": each(ins),
        "out_shardings": each(outs),
    }


def read_shardings(header: dict[str, Any], in_avals: Avals, out_avals: Avals) -> tuple[Shardings, Shardings]:
    """The shardings that `written` encoded, none in a file without; LoadError, TypeError or ValueError for others."""
    if "meshes" not in header:
        return (None,) * len(in_avals), (None,) * len(out_avals)
    meshes = [placement_json.read_axes(axes) for axes in header["meshes"]]
    if any(mesh.size != header["devices"] for mesh in meshes):
        raise LoadError(f"its header has meshes of other sizes than its {header['devices']} devices")
    ins, outs = (_read(header[f"{side}_shardings"], meshes) for side in ("in", "out"))
    for shardings, avals in ((ins, in_avals), (outs, out_avals)):
        for sharding, aval in zip(shardings, avals, strict=True):
            if sharding is not None:
                sharding.shard_shape(aval.shape)
    return ins, outs


def _read(found: Sequence[Any], meshes: Sequence[AbstractMesh]) -> Shardings:
    pairs = [s and (dict(enumerate(meshes))[s[0]], placement_json.read_spec(s[1])) for s in found]
    return tuple(pair and NamedSharding(*pair) for pair in pairs)
