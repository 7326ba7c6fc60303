"""The public function `shard_map`: a per-device function runs on all devices of a mesh, each on its shards."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence, Set
from typing import Any, NamedTuple, ParamSpec, Required, TypedDict, TypeVar, Unpack, overload

from xlamini.core import (
    AbstractMesh,
    Avals,
    Params,
    PartitionSpec,
    ShapedArray,
    ShardingError,
    Values,
    aval_of,
    flatten_axes,
    flatten_from_user,
    tree_map,
)
from xlamini.core.errors import ShardingTypeError
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.core.sharding.partial_sums import sums_of
from xlamini.core.wrapping import wraps
from xlamini.primitives import reshard_as
from xlamini.primitives.collectives.varying import varying_along
from xlamini.runtime import ArrayImpl, Mesh, NamedSharding, device_put_value
from xlamini.runtime.meshes.current_mesh import get_abstract_mesh, get_mesh
from xlamini.runtime.meshes.mesh import AnyMesh
from xlamini.runtime.meshes.named_sharding import without_trailing_none
from xlamini.staging import ArgNames, Trace, check_callable, checked_avals, name_of, rebuilt
from xlamini.staging.trace.tracing import trace
from xlamini.transforms.shard_map.hi_specs import axes_of, check_spec_of, is_hi_spec
from xlamini.transforms.shard_map.manual_axes import manual_axes, manual_here
from xlamini.transforms.shard_map.primitive import shard_map_p, varying_as
from xlamini.transforms.shard_map.printing import showing_values
from xlamini.transforms.shard_map.refs import with_parts_of_refs
from xlamini.transforms.shard_map.specs import allowed_axes, local_aval, placed_for, said_by

P = ParamSpec("P")
R = TypeVar("R")


class ShardMapOptions(TypedDict, total=False):
    """The keyword arguments of `shard_map`."""

    out_specs: Required[Any]
    in_specs: Any
    mesh: Mesh | AbstractMesh | None
    axis_names: Set[Any]
    check_vma: bool


@overload
def shard_map(f: Callable[P, R], /, **options: Unpack[ShardMapOptions]) -> Callable[P, R]: ...
@overload
def shard_map(
    f: None = None, /, **options: Unpack[ShardMapOptions]
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
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
    """A function that every device of a mesh runs on its shards of the arguments.

    Args:
      f: takes shards and returns shards; collectives such as `lax.psum` refer to the axes of the mesh by name.
      out_specs: how the shards form each output: a PartitionSpec, or a pytree of them that is a prefix of the output.
        The output is replicated along an axis that the spec does not name.
      in_specs: how each positional argument is sharded, likewise. Arguments with another sharding are moved. If left
        out, for axes of type Explicit: the sharding in the arguments' types.
      mesh: the mesh; by default the one that `set_mesh` set. A nested shard_map uses the mesh of the outer one, which
        may be left out, or be the result of `sharding.get_abstract_mesh()`. An AbstractMesh stands for the devices of
        the arguments, or of those who call the exported function.
      axis_names: the manual axes, if not all; the compiler partitions along the others. Manual axes of an outer
        shard_map stay manual.
      check_vma: track the mesh axes along which each value may vary. Then an output that may differ along an axis that
        out_specs does not name is an error, and the gradient of a replicated input is summed over the devices. Without
        it nothing is checked, and collectives are differentiated as if every value varied.

    Without `f` it is a decorator. Raises ShardingError for a spec that names no axis of the mesh, or a manual axis of
    an outer shard_map, or does not divide an argument, and for a nested shard_map over another mesh; ValueError for
    specs that are not a prefix, and for outputs that vary.

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

    @api_boundary
    @wraps(f)
    def mapped(*args: Any) -> Any:
        return with_parts_of_refs(_mapped, f, args, **mapping)

    return mapped


def _mapped(
    f: Callable[..., Any],
    args: Values,
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


class ShardMapArguments(NamedTuple):
    """The flat arguments of a call, with their names and the function's name for error messages."""

    leaves: Values
    tree: Any
    names: Sequence[str]
    avals: Avals
    fun_name: str


def operands_of(f: Callable[..., Any], args: Values) -> ShardMapArguments:
    """The flat positional arguments of a call; an error for one that is no array, or has no value."""
    leaves, tree = flatten_from_user((args, {}))
    names, fun_name = ArgNames(f, tree), name_of(f)
    avals = checked_avals(leaves, names, fun_name)
    return ShardMapArguments(leaves, tree, names, avals, fun_name)


def on_each(
    f: Callable[..., Any],
    operands: ShardMapArguments,
    ins: Sequence[PartitionSpec],
    outs_of: Callable[[Trace], Sequence[PartitionSpec]],
    params: Params,
) -> Any:
    """Run `f` on each device's shards of the operands; `outs_of(trace)` returns the specs of the outputs."""
    leaves, tree, names, avals, name = operands
    mesh = params["mesh"]
    for i, (spec, aval) in enumerate(zip(ins, avals, strict=True)):
        check_spec_of(spec, aval, f"the argument {names[i]!r}")
    places = [placed_for(aval, mesh, params["manual"], spec) for aval, spec in zip(avals, ins, strict=True)]
    leaves = list(map(reshard_as, leaves, places))
    placed = [aval.with_sharding(split) for aval, split in zip(avals, places, strict=True)]
    parts = [_part(aval, spec, params, names[i]) for i, (aval, spec) in enumerate(zip(placed, ins, strict=True))]
    traced = _traced(showing_values(f, leaves, ins, params), tree, parts, names, name, params)
    _check_captured(traced.captured, name)
    outs = outs_of(traced)
    allowed = _allowed(traced, outs, params, name)
    with manual_axes(params):
        jaxpr = varying_as(traced.jaxpr, allowed, params["check_vma"])
    specs = {"in_specs": (*(PartitionSpec(),) * len(traced.captured), *ins), "out_specs": tuple(outs)}
    flat = shard_map_p.bind(*traced.captured, *leaves, jaxpr=jaxpr, **specs, **params)
    return rebuilt(traced.out_tree, [_as_said(x, spec, mesh) for x, spec in zip(flat, outs, strict=True)])


def _as_said(x: Any, spec: PartitionSpec, mesh: AnyMesh) -> Any:
    """An array of a call outside of traced functions, with its spec as out_specs writes it: P(None), and not P()."""
    if not isinstance(x, ArrayImpl) or len(x.sharding.spec) == len(spec):
        return x
    said = NamedSharding(mesh, spec)
    return device_put_value(x, said) if without_trailing_none(said) == x.sharding else x


def _check_captured(values: Values, name: str) -> None:
    for x in values:
        if any(sums_of(aval_of(x))):
            raise ShardingTypeError(
                f"shard_map: {name} closes over a value of type {aval_of(x).str_short()}; pass it as an argument, with "
                "a spec that says along which axes it is unreduced or reduced"
            )


def checked_mesh(face: str, mesh: Any, name: str) -> AnyMesh:
    """The mesh that a function is mapped over, by default the current one; a nested shard_map has the same mesh.

    An AbstractMesh is one of the devices that the program will run on, as an exported one.
    """
    here, abstract = get_mesh(), get_abstract_mesh()
    current = abstract if here.empty else here
    found = current if mesh is None or (isinstance(mesh, AbstractMesh) and mesh == abstract) else mesh
    if isinstance(found, AbstractMesh) and found != here and not _may_be_inside(found, abstract):
        raise ShardingError(f"{face}: mesh is {mesh}, but the one here is {abstract}; leave mesh out, or pass a Mesh")
    if not isinstance(found, Mesh | AbstractMesh):
        raise TypeError(f"{face}: mesh must be a Mesh, got {mesh!r}; xlamini.make_mesh makes one")
    if found.empty:
        raise ValueError(f"{face}: there is no mesh; pass mesh= to shard_map, or set one with xlamini.set_mesh")
    if manual_here() and found != here:
        raise ShardingError(
            f"{face}: {name} is mapped over {found} within a shard_map over {here}; use shard_map over axes of that "
            "mesh, without mesh="
        )
    return found


def _may_be_inside(mesh: AbstractMesh, here: AbstractMesh) -> bool:
    """Whether the current mesh, which is no shard_map's, has these axes, or there is none."""
    return not manual_here() and (here.empty or mesh.shape_tuple == here.shape_tuple)


def _manual(axis_names: frozenset[Any], mesh: AnyMesh) -> frozenset[Any]:
    """The axes that become manual: the named ones, or all, without the manual axes of an outer shard_map."""
    unknown = sorted(axis_names.difference(mesh.axis_names), key=str)
    if unknown:
        known = ", ".join(map(repr, mesh.axis_names))
        raise ShardingError(f"shard_map: axis_names has {unknown[0]!r}, which is none of the axes {known} of the mesh")
    return (axis_names or frozenset(mesh.axis_names)) - manual_here()


def _traced(
    f: Callable[..., Any], in_tree: Any, parts: Avals, names: Any, name: str, params: Params
) -> Trace:
    """Trace the per-device function; without check_vma all its inputs are marked as varying."""

    def of_varying(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tree_map(lambda x: varying_along(x, params["manual"]), (args, kwargs))
        return f(*args, **kwargs)

    with manual_axes(params):
        return trace(f if params["check_vma"] else of_varying, in_tree, parts, None, names, name)


def inferred(said: str, avals: Avals, params: Params) -> list[PartitionSpec]:
    """The specs from the arguments' types; ValueError unless all manual axes are of type Explicit.

    `said` names the argument that was left out, for error messages.
    """
    mesh, manual = params["mesh"], params["manual"]
    silent = sorted(manual.difference(mesh.explicit_axes), key=str)
    if silent:
        raise ValueError(
            f"{said} is left out, but types do not say how arguments are split along {silent[0]!r}, which is no axis "
            "of type Explicit; say it for each argument"
        )
    return [said_by(aval, manual) for aval in avals]


def _specs(argument: str, specs: Any, tree: Any, of: str, params: Params) -> list[PartitionSpec]:
    """The spec of each leaf; error messages name the `argument` of shard_map."""
    found = flatten_axes("shard_map", specs, tree, (argument, of))
    for spec in found:
        if not (isinstance(spec, PartitionSpec) or is_hi_spec(spec)):
            raise TypeError(f"shard_map: {argument} must be PartitionSpecs, got {spec!r}; write P('x'), P() for whole")
        others = sorted(axes_of(spec) - params["manual"], key=str)
        if others:
            raise ShardingError(f"shard_map: {argument} has {spec}, but {_why_not(others[0], params['manual'])}")
        if not is_hi_spec(spec) and (spec.unreduced or spec.reduced):
            _check_sums(argument, spec, params)
    return found


def _check_sums_of_output(aval: ShapedArray, spec: PartitionSpec, manual: frozenset[Any], output: str) -> None:
    """ShardingTypeError for an output that is unreduced or reduced along other axes than its spec says."""
    if is_hi_spec(spec):
        return
    unreduced, reduced = sums_of(aval)
    if (unreduced & manual, reduced & manual) != (spec.unreduced, spec.reduced):
        raise ShardingTypeError(
            f"shard_map: out_specs has {spec} for {output}, of type {aval.str_short()}: a spec names the axes along "
            "which an output is unreduced or reduced; name them, take the sum with psum, or cast with pcast"
        )


def _check_sums(argument: str, spec: PartitionSpec, params: Params) -> None:
    """Partial sums need types that say how values vary along all axes of the mesh."""
    said = f"shard_map: {argument} has {spec}, but values are unreduced or reduced only where "
    if not params["check_vma"]:
        raise ValueError(f"{said}types say how they vary; leave out check_vma=False")
    if params["manual"].symmetric_difference(params["mesh"].axis_names):
        raise NotImplementedError(f"{said}all axes of the mesh are manual at once; leave out axis_names")


def _why_not(axis: Any, manual: frozenset[Any]) -> str:
    """The reason why a spec cannot name this axis, which does not become manual here."""
    if axis in manual_here():
        return f"along {axis!r} a shard_map around splits already; say here only how its parts are split further"
    known = ", ".join(map(repr, sorted(manual, key=str)))
    return f"{axis!r} is none of the axes {known}" if known else f"{axis!r} is no axis of the mesh"


def _part(aval: ShapedArray, spec: PartitionSpec, params: Params, name: str) -> ShapedArray:
    try:
        return local_aval(aval, params, spec)
    except ShardingError as error:
        raise ShardingError(f"shard_map: the argument {name!r}: {error}") from None


def _allowed(
    traced: Trace, specs: Sequence[PartitionSpec], params: Params, name: str
) -> tuple[frozenset[Any], ...]:
    """The axes along which each output may vary by its spec; ValueError for an output that varies along others."""
    avals = traced.jaxpr.out_avals
    allowed = allowed_axes(avals, specs, params["manual"])
    for i, (aval, spec, axes) in enumerate(zip(avals, specs, allowed, strict=True)):
        check_spec_of(spec, aval, f"output {i} of {name}")
        if not is_hi_spec(spec) and len(spec) > aval.ndim:
            raise ShardingError(
                f"shard_map: out_specs has {spec} for output {i} of {name}, a part of type {aval.str_short()} with "
                f"{aval.ndim} dimensions; give it a dimension, as with x[None]"
            )
        _check_sums_of_output(aval, spec, params["manual"], f"output {i} of {name}")
        more = sorted(aval.vma - axes, key=str)
        if more and params["check_vma"]:
            raise ValueError(
                f"shard_map: out_specs has {spec} for output {i} of {name}, which says that devices along {more[0]!r} "
                f"have the same, but its type {aval.str_short()} says that they may differ; psum or pmean it over "
                f"{more[0]!r}, name the axis in the spec, or pass check_vma=False"
            )
    return allowed
