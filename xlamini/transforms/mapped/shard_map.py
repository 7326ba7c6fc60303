"""shard_map: a function written for one device runs on every device of a mesh, each on its part of the arguments."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence, Set
from typing import Any, NamedTuple

from xlamini.core.avals import ShapedArray
from xlamini.core.edges import edge
from xlamini.core.errors import ShardingError
from xlamini.core.named_axes import axes_here
from xlamini.core.partition_spec import PartitionSpec
from xlamini.core.pytree import flatten_from_user, tree_map
from xlamini.core.pytree_prefix import flatten_axes
from xlamini.primitives.collectives.varying import varying_along
from xlamini.runtime.meshes.current_mesh import get_mesh
from xlamini.runtime.meshes.mesh import Mesh
from xlamini.transforms.arguments import ArgNames, avals_of, check_callable, check_values, name_of
from xlamini.transforms.mapped.manual import manual_axes
from xlamini.transforms.mapped.primitive import TO_COME, shard_map_p, varying_as
from xlamini.transforms.mapped.specs import axes_of, local_aval
from xlamini.transforms.tracing import Trace, rebuilt, trace


def shard_map(
    f: Callable[..., Any] | None = None,
    /,
    *,
    out_specs: Any,
    in_specs: Any = None,
    mesh: Mesh | None = None,
    axis_names: Set[Any] = frozenset(),
    check_vma: bool = True,
) -> Any:
    """A function that every device of a mesh runs on its part of the arguments.

    Args:
      f: takes parts and returns parts; collectives such as `lax.psum` refer to the axes of the mesh by name.
      out_specs: how the parts make up each output: a PartitionSpec, or a tree of them that is a prefix of the output.
        An axis that is not named says that devices along it have the same.
      in_specs: how each positional argument is split, likewise. Arguments that lie otherwise are moved.
      mesh: the mesh; the one that `set_mesh` set, if it is left out.
      axis_names: the axes that `f` is written for, if not all; of the others the compiler decides.
      check_vma: track which values vary along which axes: an output that may differ between devices which out_specs
        says have the same is an error, and the derivative with respect to what devices share sums what each of them
        finds. Without it nothing is checked, and collectives are differentiated as if every value varied.

    Without `f` it is a decorator. Raises ShardingError for a spec that names no axis of the mesh or does not divide an
    argument, ValueError for trees that are no prefixes and outputs that vary.

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
        return _mapped(f, args, **mapping)

    return mapped


def _mapped(
    f: Callable[..., Any],
    args: Sequence[Any],
    mesh: Mesh | None,
    in_specs: Any,
    out_specs: Any,
    axis_names: frozenset[Any],
    check_vma: bool,
) -> Any:
    name, mesh = name_of(f), _checked_mesh(mesh)
    params = {"mesh": mesh, "manual": axis_names or frozenset(mesh.axis_names), "check_vma": check_vma}
    leaves, in_tree = flatten_from_user((args, {}))
    names = ArgNames(f, in_tree)
    avals = avals_of(leaves, names, name)
    check_values(leaves, names, name)
    ins = _specs("in_specs", in_specs, (in_specs, None), in_tree, "args", params)
    operands = Operands(leaves, in_tree, names, avals, name)

    def outs_of(traced: Trace) -> list[PartitionSpec]:
        return _specs("out_specs", out_specs, out_specs, traced.out_tree, "output", params)

    return on_each(f, operands, ins, outs_of, params)


class Operands(NamedTuple):
    """The arguments of a call, flat, and what errors say of them and of the function."""

    leaves: Sequence[Any]
    tree: Any
    names: Sequence[str]
    avals: Sequence[ShapedArray]
    fun_name: str


def on_each(
    f: Callable[..., Any],
    operands: Operands,
    ins: Sequence[PartitionSpec],
    outs_of: Callable[[Trace], Sequence[PartitionSpec]],
    params: dict[str, Any],
) -> Any:
    """Run `f` on each device's parts of the operands; `outs_of` says of its trace how the outputs lie."""
    leaves, tree, names, avals, name = operands
    mesh, checked = params["mesh"], params["check_vma"]
    if any(axis.manual for axis in axes_here()):
        raise NotImplementedError(f"shard_map: {name} is mapped within a shard_map, {TO_COME}")
    parts = [_part(aval, mesh, spec, names[i]) for i, (aval, spec) in enumerate(zip(avals, ins, strict=True))]
    traced = _traced(f, tree, parts, names, name, params)
    outs = outs_of(traced)
    with manual_axes(params):
        jaxpr = varying_as(traced.jaxpr, _wanted(traced, outs, checked, name), checked)
    specs = {"in_specs": (*(PartitionSpec(),) * len(traced.captured), *ins), "out_specs": tuple(outs)}
    found = shard_map_p.bind(*traced.captured, *leaves, jaxpr=jaxpr, **specs, **params)
    return rebuilt(traced.out_tree, found)


def _checked_mesh(mesh: Any) -> Mesh:
    mesh = get_mesh() if mesh is None else mesh
    if not isinstance(mesh, Mesh):
        raise TypeError(f"shard_map: mesh must be a Mesh, got {mesh!r}; xlamini.make_mesh makes one")
    if mesh.empty:
        raise ValueError("shard_map: there is no mesh; pass mesh=, or set one with xlamini.set_mesh")
    return mesh


def _traced(
    f: Callable[..., Any], in_tree: Any, parts: Sequence[ShapedArray], names: Any, name: str, params: dict[str, Any]
) -> Trace:
    """The function of one device; where nothing is checked, all that it computes with varies."""

    def of_varying(*args: Any, **kwargs: Any) -> Any:
        args, kwargs = tree_map(lambda x: varying_along(x, params["manual"]), (args, kwargs))
        return f(*args, **kwargs)

    with manual_axes(params):
        return trace(f if params["check_vma"] else of_varying, in_tree, parts, None, names, name)


def _specs(argument: str, said: Any, specs: Any, tree: Any, of: str, params: dict[str, Any]) -> list[PartitionSpec]:
    """The spec of each leaf; errors name the argument of shard_map."""
    if said is None:
        raise NotImplementedError(f"shard_map: {argument} is missing; pass a PartitionSpec for each argument")
    found = flatten_axes("shard_map", specs, tree, (argument, of))
    for spec in found:
        if not isinstance(spec, PartitionSpec):
            raise TypeError(f"shard_map: {argument} must be PartitionSpecs, got {spec!r}; write P('x'), P() for whole")
        unknown = [a for a in axes_of(spec) if a not in params["manual"]]
        if unknown:
            known = ", ".join(map(repr, sorted(params["manual"], key=str)))
            raise ShardingError(f"shard_map: {argument} has {spec}, but {unknown[0]!r} is none of the axes {known}")
    return found


def _part(aval: ShapedArray, mesh: Mesh, spec: PartitionSpec, name: str) -> ShapedArray:
    try:
        return local_aval(aval, mesh, spec)
    except ShardingError as error:
        raise ShardingError(f"shard_map: the argument {name!r}: {error}") from None


def _wanted(
    traced: Trace, specs: Sequence[PartitionSpec], checked: bool, name: str
) -> tuple[frozenset[Any], ...]:
    """Along which axes each output varies, by its spec; ValueError for one that may vary along more."""
    wanted = tuple(map(axes_of, specs))
    for i, (aval, spec, axes) in enumerate(zip(traced.jaxpr.out_avals, specs, wanted, strict=True)):
        if len(spec) > aval.ndim:
            raise ShardingError(
                f"shard_map: out_specs has {spec} for output {i} of {name}, a part of type {aval.str_short()} with "
                f"{aval.ndim} dimensions; give it a dimension, as with x[None]"
            )
        more = sorted(aval.vma - axes, key=str)
        if more and checked:
            raise ValueError(
                f"shard_map: out_specs has {spec} for output {i} of {name}, which says that devices along {more[0]!r} "
                f"have the same, but its type {aval.str_short()} says that they may differ; psum or pmean it over "
                f"{more[0]!r}, name the axis in the spec, or pass check_vma=False"
            )
    return wanted
