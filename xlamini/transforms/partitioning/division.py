"""The division of a call: the user's `partition` function, asked by XLA's partitioner, and its function for shards."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import AxisType, Jaxpr, PartitionSpec, ShapeError, active, flatten, flatten_axes, tree_map, unflatten
from xlamini.core.flags.config import under
from xlamini.primitives.collectives.varying import varying_along
from xlamini.runtime import Mesh, NamedSharding, Sharding
from xlamini.runtime.meshes.program_placement import named_sharding
from xlamini.staging import check_callable
from xlamini.staging.trace.shape_struct import ShapeDtypeStruct
from xlamini.staging.trace.tracing import Trace, trace
from xlamini.transforms.partitioning.partitioning import Partitioning
from xlamini.transforms.shard_map.manual_axes import manual_axes


class Division(NamedTuple):
    """What the partitioner is told of one call: it is called with XLA's shardings of the arguments and results."""

    partitioning: Partitioning
    jaxpr: Jaxpr
    mesh: Mesh
    platform: str
    flags: Any

    def __call__(self, arg_shardings: Sequence[Any], result_shardings: Sequence[Any]) -> Any:
        """The module for one device, and the shardings of its arguments and results, as XLA's."""
        with active(None), under(self.flags):
            how = self._asked(arg_shardings, result_shardings)
            module = self._lowered(how)
        pairs = [(how.ins, self.jaxpr.in_avals), (how.outs, self.jaxpr.out_avals)]
        ins, outs = ([s._to_xla_hlo_sharding(a.ndim) for s, a in zip(*pair, strict=True)] for pair in pairs)
        return module, ins, outs

    def _asked(self, arg_shardings: Sequence[Any], result_shardings: Sequence[Any]) -> PartitionResult:
        """The user's answer for these shardings."""
        said, jaxpr = self.partitioning, self.jaxpr
        mesh = self.mesh.update_axis_types(dict.fromkeys(self.mesh.axis_names, AxisType.Auto))
        args = unflatten(said.in_tree, _structs(jaxpr.in_avals, arg_shardings, mesh))
        result = unflatten(said.out_tree, _structs(jaxpr.out_avals, result_shardings, mesh))
        found = said.partition(*said.static_args, mesh, args, result)
        if not isinstance(found, tuple | list) or len(found) != 4:
            raise TypeError(
                f"custom_partitioning: the partition function of {said.name} must return (mesh, lower_fn, "
                f"result_shardings, arg_shardings), got {found!r}"
            )
        own, lower_fn, outs, ins = found
        check_callable(f"custom_partitioning: lower_fn of {said.name}", lower_fn)
        if not isinstance(own, Mesh):
            raise TypeError(f"custom_partitioning: the partition function of {said.name} returned {own!r} for the mesh")
        return PartitionResult(
            own, lower_fn, self._flat("arg", ins, said.in_tree), self._flat("result", outs, said.out_tree)
        )

    def _flat(self, what: str, shardings: Any, tree: Any) -> list[Any]:
        name = f"{what}_shardings"
        flat = flatten_axes("custom_partitioning", shardings, tree, (name, what))
        wrong = next((s for s in flat if not isinstance(s, Sharding)), None)
        if wrong is not None or None in flat:
            raise ValueError(
                f"Custom Partitioning rules must return Sharding: {name} of {self.partitioning.name} has {wrong!r}; "
                "write NamedSharding(mesh, P(...))"
            )
        return flat

    def _lowered(self, how: PartitionResult) -> bytes:
        """The function for shards as a module, traced for the shapes of shards."""
        from xlamini.lowering.per_device import lower_per_device  # imports MLIR, which the program has imported

        wanted = _shards(self.jaxpr.in_avals, how.ins)
        traced = _traced(how, self.partitioning, wanted)
        found = [(a.shape, a.dtype) for a in traced.jaxpr.out_avals]
        expected = [(a.shape, a.dtype) for a in _shards(self.jaxpr.out_avals, how.outs)]
        if found != expected:
            raise ShapeError(
                f"Mismatch in result shapes: lower_fn of {self.partitioning.name} returned {_said(found)} for the "
                f"shards {_said([(a.shape, a.dtype) for a in wanted])}, but its result_shardings ask for "
                f"{_said(expected)}"
            )
        constants = [np.asarray(x) for x in traced.captured]
        return lower_per_device(traced.jaxpr, self.partitioning.name, self.platform, how.mesh, constants)


class PartitionResult(NamedTuple):
    """What the user's function returned, with flat shardings."""

    mesh: Mesh
    lower_fn: Callable[..., Any]
    ins: list[Any]
    outs: list[Any]


def _structs(avals: Sequence[Any], shardings: Sequence[Any], mesh: Mesh) -> list[ShapeDtypeStruct]:
    pairs = zip(avals, shardings, strict=True)
    return [ShapeDtypeStruct(a.shape, a.dtype, sharding=_named(s, mesh, a.ndim)) for a, s in pairs]


def _named(sharding: Any, mesh: Mesh, ndim: int) -> NamedSharding:
    """XLA's sharding, with a spec that has an entry for each dimension."""
    found = named_sharding(sharding, mesh, ndim)
    return found.update(spec=PartitionSpec(*found.spec, *[None] * (ndim - len(found.spec))))


def _shards(avals: Sequence[Any], shardings: Sequence[Any]) -> list[Any]:
    return [a.update(shape=s.shard_shape(a.shape), vma=frozenset()) for a, s in zip(avals, shardings, strict=True)]


def _traced(how: PartitionResult, partitioning: Partitioning, avals: Sequence[Any]) -> Trace:
    """The trace of the function for shards, whose collectives may name all axes of the mesh."""
    axes = frozenset(how.mesh.axis_names)

    def of_varying(*args: Any) -> Any:
        return how.lower_fn(*tree_map(lambda x: varying_along(x, axes), args))

    tree = flatten((unflatten(partitioning.in_tree, avals), {}))[1]
    with manual_axes({"mesh": how.mesh, "manual": axes, "check_vma": False}):
        return trace(of_varying, tree, avals, None, None, partitioning.name)


def _said(types: Sequence[Any]) -> str:
    return ", ".join(f"{dtype}{list(shape)}" for shape, dtype in types)
