"""auto_axes and explicit_axes: functions that run with other axis types of the mesh."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core import AbstractMesh, AxisType, Values, aval_of, flatten_from_user, tree_leaves, unflatten
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.core.sharding.abstract_mesh import AxisName
from xlamini.core.tracing.state import state
from xlamini.core.wrapping import wraps
from xlamini.primitives import reshard_as
from xlamini.runtime.meshes.current_mesh import get_abstract_mesh, use_abstract_mesh
from xlamini.staging import check_callable, jit
from xlamini.transforms.sharding.constraint import reshard


def auto_axes(
    f: Callable[..., Any] | None = None,
    /,
    *,
    axes: AxisName | Sequence[AxisName] | None = None,
    out_sharding: Any = None,
) -> Any:
    """A function that runs with Explicit axes of the mesh as Auto axes: the compiler partitions along them.

    Args:
      f: the function; types of values in it have no sharding along the axes.
      axes: a name or several; by default all of the mesh's explicit axes.
      out_sharding: the sharding of the results: a PartitionSpec or NamedSharding, or a pytree of them that is a prefix
        of the output. It may also be passed in the call. None: replicated.

    The mesh is the current one, or else the mesh of the arguments. Without `f` it is a decorator. ValueError without a
    mesh, KeyError for a name that it does not have, ShardingError for a result that cannot be sharded so.

    >>> from xlamini.sharding import AxisType, PartitionSpec as P
    >>> mesh = xlamini.make_mesh((1,), ("x",), axis_types=AxisType.Explicit)
    >>> with xlamini.set_mesh(mesh):
    ...     auto_axes(lambda x: x[::-1], out_sharding=P("x"))(xlamini.numpy.arange(3)).aval
    ShapedArray(int32[3@x])
    """
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)
    check_callable("auto_axes", f)

    def changed(args: Any, kwargs: Any, mesh: AbstractMesh, out: Any) -> Any:
        names = _named(axes, mesh.explicit_axes)
        inside = mesh.update_axis_types(dict.fromkeys(names, AxisType.Auto))
        args, kwargs = _without((args, kwargs), inside)
        with use_abstract_mesh(inside):
            results = f(*args, **kwargs)
        return reshard(results, out)

    call = _on_mesh("auto_axes", changed)

    @api_boundary
    @wraps(f)
    def with_auto_axes(*args: Any, out_sharding: Any = out_sharding, **kwargs: Any) -> Any:
        return call(args, kwargs, out_sharding)

    return with_auto_axes


def explicit_axes(
    f: Callable[..., Any] | None = None,
    /,
    *,
    axes: AxisName | Sequence[AxisName] | None = None,
    in_sharding: Any = None,
) -> Any:
    """A function that runs with Auto axes of the mesh as Explicit axes: types of values have shardings along them.

    Args:
      f: the function.
      axes: a name or several; by default all axes of the mesh that are of type Auto.
      in_sharding: the sharding of the arguments: a PartitionSpec or NamedSharding, or a pytree of them that is a prefix
        of the tuple of positional arguments. It may also be passed in the call.

    The mesh is the current one; outside the function the compiler partitions again. Without `f` it is a decorator.
    ValueError if no mesh is set or `in_sharding` is missing, KeyError for a name that the mesh does not have.

    >>> from xlamini.sharding import PartitionSpec as P
    >>> with xlamini.set_mesh(xlamini.make_mesh((1,), ("x",))):
    ...     explicit_axes(lambda x: print(x.aval), in_sharding=P("x"))(xlamini.numpy.arange(3))
    int32[3@x]
    """
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)
    check_callable("explicit_axes", f)

    def changed(args: Any, kwargs: Any, mesh: AbstractMesh, given: Any) -> Any:
        names = _named(axes, mesh.auto_axes)
        with use_abstract_mesh(mesh.update_axis_types(dict.fromkeys(names, AxisType.Explicit))):
            results = f(*reshard(args, given), **kwargs)
        return _without(results, mesh)

    call = _on_mesh("explicit_axes", changed)

    @api_boundary
    @wraps(f)
    def with_explicit_axes(*args: Any, in_sharding: Any = in_sharding, **kwargs: Any) -> Any:
        if in_sharding is None:
            raise ValueError("explicit_axes: in_sharding is missing; say how the arguments are split, as with P('x')")
        return call(args, kwargs, in_sharding)

    return with_explicit_axes


def _on_mesh(face: str, changed: Callable[..., Any]) -> Callable[..., Any]:
    """`changed(args, kwargs, mesh, said)` with the current mesh, jitted unless it is called while tracing."""

    def with_leaves(args: Any, kwargs: Any, mesh: AbstractMesh, leaves: Values, tree: Any) -> Any:
        return changed(args, kwargs, mesh, unflatten(tree, leaves))

    run = jit(with_leaves, static_argnums=(2, 3, 4))

    def call(args: Any, kwargs: Any, said: Any) -> Any:
        leaves, tree = flatten_from_user(said)  # a container of shardings could not be static
        mesh = _mesh_of(face, (args, kwargs))
        return (run if state.builder is None else with_leaves)(args, kwargs, mesh, tuple(leaves), tree)

    return call


def _mesh_of(what: str, args: Any) -> AbstractMesh:
    """The current mesh, or else the mesh in the arguments' types."""
    mesh = get_abstract_mesh()
    if not mesh.empty:
        return mesh
    for x in tree_leaves(args):
        split = aval_of(x).explicit_sharding
        if split is not None:
            return split.mesh
    raise ValueError(f"{what}: there is no mesh; set one with xlamini.set_mesh(mesh)")


def _named(axes: Any, every: Sequence[AxisName]) -> Sequence[AxisName]:
    if axes is None:
        return every
    return tuple(axes) if isinstance(axes, tuple | list | set | frozenset) else (axes,)


def _without(tree: Any, mesh: AbstractMesh) -> Any:
    """The values, with shardings in their types along the explicit axes of `mesh` only."""
    leaves, structure = flatten_from_user(tree)
    splits = [aval_of(x).explicit_sharding for x in leaves]
    return unflatten(structure, [reshard_as(x, s and s.on(mesh)) for x, s in zip(leaves, splits, strict=True)])
