"""The public function `smap`: shard_map over one axis of the current mesh, with dimension numbers as specs."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar, overload

from xlamini.core import PartitionSpec, ShapedArray, ShardingError, Values, flatten_axes
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.core.wrapping import wraps
from xlamini.runtime.meshes.mesh import AnyMesh
from xlamini.staging import Trace, check_callable, name_of
from xlamini.transforms.shard_map.api import checked_mesh, inferred, on_each, operands_of
from xlamini.transforms.shard_map.manual_axes import manual_here
from xlamini.transforms.shard_map.refs import refuse_refs

_LEFT_OUT: Any = object()


P = ParamSpec("P")
R = TypeVar("R")


@overload
def smap(f: Callable[P, R], /, *, in_axes: Any = ..., out_axes: Any, axis_name: Any) -> Callable[P, R]: ...
@overload
def smap(
    f: None = None, /, *, in_axes: Any = ..., out_axes: Any, axis_name: Any
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def smap(
    f: Callable[..., Any] | None = None, /, *, in_axes: Any = _LEFT_OUT, out_axes: Any, axis_name: Any
) -> Any:
    """A function that the devices along one axis of the mesh run, each on its shards of the arguments.

    It is `shard_map` over the mesh that `set_mesh` set, or over the mesh of an outer shard_map or smap. The compiler,
    or a nested smap, partitions along the other axes.

    Args:
      f: takes shards and returns shards; collectives such as `lax.psum` refer to the axis by name.
      in_axes: the dimension of each positional argument that is sharded along the axis (None: replicated): an int or
        None for all, or a tuple with an entry for each argument, which may be a pytree that is a prefix of it. If left
        out, for an axis of type Explicit: the sharding in the arguments' types.
      out_axes: the dimension along which the shards form each output (None: replicated), or a pytree likewise.
      axis_name: the axis of the mesh.

    Without `f` it is a decorator. Raises ShardingError for an axis that the mesh does not have, that an outer smap has
    made manual, or that does not divide an argument; ValueError if no mesh is set, for a dimension that does not exist,
    and for an output with `out_axes=None` that differs between devices.

    >>> total = smap(lambda a: xlamini.lax.psum(a.sum(), "x"), in_axes=0, out_axes=None, axis_name="x")
    >>> with xlamini.set_mesh(xlamini.make_mesh((1,), ("x",))):
    ...     total(xlamini.numpy.ones(4))
    Array(4., dtype=float32)
    """
    options = {"in_axes": in_axes, "out_axes": out_axes, "axis_name": axis_name}
    if f is None:
        return functools.partial(smap, **options)
    check_callable("smap", f)
    _check_options(**options)

    @api_boundary
    @wraps(f)
    def mapped(*args: Any) -> Any:
        return _mapped(f, args, **options)

    return mapped


def _check_options(in_axes: Any, out_axes: Any, axis_name: Any) -> None:
    """TypeError for invalid options, before the function is called."""
    if isinstance(axis_name, tuple | list | set | frozenset):
        raise TypeError(f"smap: axis_name must be one axis, got {axis_name!r}; use one smap in another, or shard_map")
    if in_axes is not _LEFT_OUT and not isinstance(in_axes, int | tuple | None):
        raise TypeError(
            f"smap: in_axes must be an int, None, or a tuple with an entry for each argument, got {in_axes!r}"
        )


def _mapped(f: Callable[..., Any], args: Values, in_axes: Any, out_axes: Any, axis_name: Any) -> Any:
    name = name_of(f)
    mesh = checked_mesh("smap", None, name)
    _check_axis(axis_name, mesh)
    refuse_refs("smap", args)
    operands = operands_of(f, args)
    avals, names = operands.avals, operands.names
    params = {"mesh": mesh, "manual": frozenset({axis_name}), "check_vma": True}
    if in_axes is _LEFT_OUT:
        ins = inferred("smap: in_axes", avals, params)
    else:
        dims = flatten_axes("smap", (in_axes, None), operands.tree, ("in_axes", "args"))
        ins = [_spec(d, avals[i], f"in_axes is {d!r} for {names[i]} of {name}", axis_name) for i, d in enumerate(dims)]

    def outs_of(traced: Trace) -> list[PartitionSpec]:
        found = flatten_axes("smap", out_axes, traced.out_tree, ("out_axes", "output"))
        outs = traced.jaxpr.out_avals
        said = [f"out_axes is {d!r} for output {i} of {name}" for i, d in enumerate(found)]
        return [_spec(*each, axis_name) for each in zip(found, outs, said, strict=True)]

    return on_each(f, operands, ins, outs_of, params)


def _check_axis(axis_name: Any, mesh: AnyMesh) -> None:
    if axis_name not in mesh.axis_names:
        known = ", ".join(map(repr, mesh.axis_names))
        raise ShardingError(f"smap: axis_name is {axis_name!r}, which is none of the axes {known} of the mesh")
    if axis_name in manual_here():
        raise ShardingError(f"smap: along {axis_name!r} an smap or shard_map around splits already; name another axis")


def _spec(dim: Any, aval: ShapedArray, said: str, axis_name: Any) -> PartitionSpec:
    """The spec of a leaf that is sharded along dimension `dim`; `said` begins the error messages."""
    if dim is None:
        return PartitionSpec()
    if not isinstance(dim, int):
        raise TypeError(f"smap: {said}; pass an int, None, or a tree of them")
    if not -aval.ndim <= dim < aval.ndim:
        has = f"has dimensions 0 to {aval.ndim - 1}" if aval.ndim else "has no dimension to split; use None"
        raise ValueError(f"smap: {said}, which is {aval.str_short(short_dtypes=False)} and {has}")
    return PartitionSpec().inserted(dim % aval.ndim, axis_name)
