"""shard_map: a function written for one device runs on every device of a mesh, each on its part of the arguments."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence, Set
from typing import Any, NamedTuple

from xlamini.core.api_boundary import edge
from xlamini.core.avals import ShapedArray
from xlamini.core.errors import ShardingError
from xlamini.core.pytree import flatten_from_user, tree_map
from xlamini.core.pytree.prefix import flatten_axes
from xlamini.core.sharding.abstract_mesh import AbstractMesh
from xlamini.core.sharding.partition_spec import PartitionSpec
from xlamini.primitives.collectives.varying import varying_along
from xlamini.primitives.reshard import divided_as
from xlamini.runtime.meshes.current_mesh import get_abstract_mesh, get_mesh
from xlamini.runtime.meshes.mesh import Mesh
from xlamini.staging.trace.arguments import ArgNames, avals_of, check_callable, check_values, name_of
from xlamini.staging.trace.tracing import Trace, rebuilt, trace
from xlamini.transforms.shard_map.manual_axes import manual_axes, manual_here
from xlamini.transforms.shard_map.primitive import shard_map_p, varying_as
from xlamini.transforms.shard_map.refs import with_parts_of_refs
from xlamini.transforms.shard_map.specs import allowed_axes, local_aval, placed_for, said_by


def shard_map(
    f: Callable[..., Any] | None = None,
    /,
    *,
    out_specs: Any,
    in_specs: Any = None,
    mesh: Mesh | AbstractMesh | None = None,
    axis_names: Set[Any] = frozenset(),
    check_vma: bool = True,
) -> Any:
    """A function that every device of a mesh runs on its part of the arguments.

    Args:
      f: takes parts and returns parts; collectives such as `lax.psum` refer to the axes of the mesh by name.
      out_specs: how the parts make up each output: a PartitionSpec, or a tree of them that is a prefix of the output.
        An axis that is not named says that devices along it have the same.
      in_specs: how each positional argument is split, likewise. Arguments that lie otherwise are moved. Left out, along
        axes of type Explicit: as they are.
      mesh: the mesh; the one that `set_mesh` set, if it is left out. Within another shard_map it is the mesh of that
        one, and may be left out, or be what `sharding.get_abstract_mesh()` gives.
      axis_names: the axes that `f` is written for, if not all; of the others the compiler decides. Those of a shard_map
        around are so already.
      check_vma: track which values vary along which axes: an output that may differ between devices which out_specs
        says have the same is an error, and the derivative with respect to what devices share sums what each of them
        finds. Without it nothing is checked, and collectives are differentiated as if every value varied.

    Without `f` it is a decorator. Raises ShardingError for a spec that names no axis of the mesh, or one of a shard_map
    around, or does not divide an argument, and within another shard_map for another mesh; ValueError for trees that
    are no prefixes and outputs that vary.

    >>> from xlamini.sharding import PartitionSpec as P
    >>> mesh = xlamini.make_mesh((1,), ("x",))
    >>> total = shard_map(lambda x: xlamini.lax.psum(x.sum(), "x"), mesh=mesh, in_specs=P("x"), out_specs=P())
    >>> total(xlamini.numpy.arange(4.0))
    Array(6., dtype=float32)
    """
    options = {"mesh": mesh, "in_specs": in_specs, "out_specs": out_specs, "check_vma": check_vma}
    if f is None:
        return functools.partial(shard_map, axis_names=axis_names, **options)
    check_callable("shard_map", f)
    mapping = {**options, "axis_names": frozenset(axis_names)}

    @edge
    @functools.wraps(f)
    def mapped(*args: Any) -> Any:
        return with_parts_of_refs(_mapped, f, args, **mapping)

    return mapped


def _mapped(
    f: Callable[..., Any],
    args: Sequence[Any],
    mesh: Mesh | AbstractMesh | None,
    in_specs: Any,
    out_specs: Any,
    axis_names: frozenset[Any],
    check_vma: bool,
) -> Any:
    mesh = checked_mesh("shard_map", mesh, name_of(f))
    params = {"mesh": mesh, "manual": _manual(axis_names, mesh), "check_vma": check_vma}
    operands = operands_of(f, args)
    if in_specs is None:
        ins = inferred("shard_map: in_specs", operands.avals, params)
    else:
        ins = _specs("in_specs", (in_specs, None), operands.tree, "args", params)

    def outs_of(traced: Trace) -> list[PartitionSpec]:
        return _specs("out_specs", out_specs, traced.out_tree, "output", params)

    return on_each(f, operands, ins, outs_of, params)


class Operands(NamedTuple):
    """The arguments of a call, flat, and what errors say of them and of the function."""

    leaves: Sequence[Any]
    tree: Any
    names: Sequence[str]
    avals: Sequence[ShapedArray]
    fun_name: str


def operands_of(f: Callable[..., Any], args: Sequence[Any]) -> Operands:
    """The positional arguments of a call; an error for one that is no array, or has no value."""
    leaves, tree = flatten_from_user((args, {}))
    names, fun_name = ArgNames(f, tree), name_of(f)
    avals = avals_of(leaves, names, fun_name)
    check_values(leaves, names, fun_name)
    return Operands(leaves, tree, names, avals, fun_name)


def on_each(
    f: Callable[..., Any],
    operands: Operands,
    ins: Sequence[PartitionSpec],
    outs_of: Callable[[Trace], Sequence[PartitionSpec]],
    params: dict[str, Any],
) -> Any:
    """Run `f` on each device's parts of the operands; `outs_of` says of its trace how the outputs lie."""
    leaves, tree, names, avals, name = operands
    mesh = params["mesh"]
    places = [placed_for(aval, mesh, params["manual"], spec) for aval, spec in zip(avals, ins, strict=True)]
    leaves = list(map(divided_as, leaves, places))
    placed = [aval.divided(split) for aval, split in zip(avals, places, strict=True)]
    parts = [_part(aval, spec, params, names[i]) for i, (aval, spec) in enumerate(zip(placed, ins, strict=True))]
    traced = _traced(f, tree, parts, names, name, params)
    outs = outs_of(traced)
    allowed = _allowed(traced, outs, params, name)
    with manual_axes(params):
        jaxpr = varying_as(traced.jaxpr, allowed, params["check_vma"])
    specs = {"in_specs": (*(PartitionSpec(),) * len(traced.captured), *ins), "out_specs": tuple(outs)}
    found = shard_map_p.bind(*traced.captured, *leaves, jaxpr=jaxpr, **specs, **params)
    return rebuilt(traced.out_tree, found)


def checked_mesh(face: str, mesh: Any, name: str) -> Mesh:
    """The mesh that a function is mapped over, by default the one here; within a shard_map it is the same."""
    here, abstract = get_mesh(), get_abstract_mesh()
    found = here if mesh is None or (isinstance(mesh, AbstractMesh) and mesh == abstract) else mesh
    if isinstance(found, AbstractMesh):
        raise ShardingError(f"{face}: mesh is {mesh}, but the one here is {abstract}; leave mesh out, or pass a Mesh")
    if not isinstance(found, Mesh):
        raise TypeError(f"{face}: mesh must be a Mesh, got {mesh!r}; xlamini.make_mesh makes one")
    if found.empty:
        raise ValueError(f"{face}: there is no mesh; pass mesh= to shard_map, or set one with xlamini.set_mesh")
    if manual_here() and found != here:
        raise ShardingError(
            f"{face}: {name} is mapped over {found} within a shard_map over {here}; use shard_map over axes of that "
            "mesh, without mesh="
        )
    return found


def _manual(axis_names: frozenset[Any], mesh: Mesh) -> frozenset[Any]:
    """The axes that become manual: those that are named, or all, but for those that are so already."""
    unknown = sorted(axis_names.difference(mesh.axis_names), key=str)
    if unknown:
        known = ", ".join(map(repr, mesh.axis_names))
        raise ShardingError(f"shard_map: axis_names has {unknown[0]!r}, which is none of the axes {known} of the mesh")
    return (axis_names or frozenset(mesh.axis_names)) - manual_here()


def _traced(
    f: Callable[..., Any], in_tree: Any, parts: Sequence[ShapedArray], names: Any, name: str, params: dict[str, Any]
) -> Trace:
    """The function of one device; where nothing is checked, all that it computes with varies."""

    def of_varying(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tree_map(lambda x: varying_along(x, params["manual"]), (args, kwargs))
        return f(*args, **kwargs)

    with manual_axes(params):
        return trace(f if params["check_vma"] else of_varying, in_tree, parts, None, names, name)


def inferred(said: str, avals: Sequence[ShapedArray], params: dict[str, Any]) -> list[PartitionSpec]:
    """The specs that the types of arguments say; ValueError where an axis is of another type than Explicit.

    Errors begin with the argument that was left out.
    """
    mesh, manual = params["mesh"], params["manual"]
    silent = sorted(manual.difference(mesh.explicit_axes), key=str)
    if silent:
        raise ValueError(
            f"{said} is left out, but types do not say how arguments are split along {silent[0]!r}, which is no axis "
            "of type Explicit; say it for each argument"
        )
    return [said_by(aval, manual) for aval in avals]


def _specs(argument: str, specs: Any, tree: Any, of: str, params: dict[str, Any]) -> list[PartitionSpec]:
    """The spec of each leaf; errors name the argument of shard_map."""
    found = flatten_axes("shard_map", specs, tree, (argument, of))
    for spec in found:
        if not isinstance(spec, PartitionSpec):
            raise TypeError(f"shard_map: {argument} must be PartitionSpecs, got {spec!r}; write P('x'), P() for whole")
        others = sorted(spec.axes - params["manual"], key=str)
        if others:
            raise ShardingError(f"shard_map: {argument} has {spec}, but {_why_not(others[0], params['manual'])}")
    return found


def _why_not(axis: Any, manual: frozenset[Any]) -> str:
    """Why a spec cannot name an axis that does not become manual here."""
    if axis in manual_here():
        return f"along {axis!r} a shard_map around splits already; say here only how its parts are split further"
    known = ", ".join(map(repr, sorted(manual, key=str)))
    return f"{axis!r} is none of the axes {known}" if known else f"{axis!r} is no axis of the mesh"


def _part(aval: ShapedArray, spec: PartitionSpec, params: dict[str, Any], name: str) -> ShapedArray:
    try:
        return local_aval(aval, params["mesh"], params["manual"], spec)
    except ShardingError as error:
        raise ShardingError(f"shard_map: the argument {name!r}: {error}") from None


def _allowed(
    traced: Trace, specs: Sequence[PartitionSpec], params: dict[str, Any], name: str
) -> tuple[frozenset[Any], ...]:
    """Along which axes each output varies, by its spec; ValueError for one that may vary along more."""
    avals = traced.jaxpr.out_avals
    allowed = allowed_axes(avals, specs, params["manual"])
    for i, (aval, spec, axes) in enumerate(zip(avals, specs, allowed, strict=True)):
        if len(spec) > aval.ndim:
            raise ShardingError(
                f"shard_map: out_specs has {spec} for output {i} of {name}, a part of type {aval.str_short()} with "
                f"{aval.ndim} dimensions; give it a dimension, as with x[None]"
            )
        more = sorted(aval.vma - axes, key=str)
        if more and params["check_vma"]:
            raise ValueError(
                f"shard_map: out_specs has {spec} for output {i} of {name}, which says that devices along {more[0]!r} "
                f"have the same, but its type {aval.str_short()} says that they may differ; psum or pmean it over "
                f"{more[0]!r}, name the axis in the spec, or pass check_vma=False"
            )
    return allowed
