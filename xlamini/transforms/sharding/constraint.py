"""with_sharding_constraint and reshard: the sharding of values inside and outside of programs."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xlamini.core import ShapedArray, ShardingError, Tracer, flatten_axes, flatten_from_user, unflatten
from xlamini.core.errors import ShardingTypeError
from xlamini.core.flags.config import strict_sharding
from xlamini.core.sharding.propagation import warn_of_open_split
from xlamini.primitives.placement.layout_constraint import check_rank, with_layout_constraint
from xlamini.primitives.placement.sharding_constraint import moved_to, sharding_constraint_p
from xlamini.runtime import ArrayImpl, NamedSharding, Sharding, named
from xlamini.runtime.arrays.layout import Format, Layout
from xlamini.runtime.meshes.current_mesh import as_here, get_mesh
from xlamini.runtime.meshes.mesh import AbstractMesh, Mesh
from xlamini.runtime.meshes.named_sharding import manual_axis_in, split_in_type
from xlamini.transforms.sharding.device_put import device_put


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """The arrays of a pytree, each constrained to a sharding, which the compiler then uses for the value.

    Args:
      x: a pytree of arrays.
      shardings: a sharding for all of them, or a pytree of shardings that is a prefix of `x`; None is no constraint. A
        PartitionSpec refers to the mesh that `set_mesh` set. A `Format` has a layout too.

    Outside a traced function it moves arrays as `device_put` does; an abstract mesh then stands for the array's own, or
    the current one. The layout of a Format is that of a value in a program; arrays are in row-major order. Under `vmap`
    the compiler chooses the sharding of the mapped axis. Along axes of type Explicit it is an assertion: a value with
    another sharding is moved, with a warning, or under the flag `strict_sharding` a ShardingTypeError.

    TypeError for values that are no shardings, RuntimeError for a PartitionSpec while no mesh is set,
    ShardingError for a dimension that cannot be sharded so.

    >>> with_sharding_constraint(xlamini.numpy.arange(2), xlamini.numpy.ones(()).sharding)
    Array([0, 1], dtype=int32)
    """
    return _each("with_sharding_constraint", "shardings", "x", x, shardings, _checked_constraint, _constrained)


def reshard(xs: Any, out_shardings: Any) -> Any:
    """The arrays of a pytree, each moved to a sharding, inside or outside of a traced function.

    Args:
      xs: a pytree of arrays.
      out_shardings: a sharding for all of them, or a pytree of shardings that is a prefix of `xs`; None does not move
        an array. A PartitionSpec refers to the mesh that `set_mesh` set.

    TypeError for values that are no shardings, ValueError for a PartitionSpec while no mesh is set, ShardingError for a
    dimension that cannot be sharded so.

    >>> reshard(xlamini.numpy.arange(2), xlamini.numpy.ones(()).sharding)
    Array([0, 1], dtype=int32)
    """
    return _each("reshard", "out_shardings", "xs", xs, out_shardings, _checked_target, _moved)


def _each(
    face: str,
    argument: str,
    of: str,
    x: Any,
    shardings: Any,
    check: Callable[[Any], Any],
    place: Callable[[Any, Any], Any],
) -> Any:
    leaves, tree = flatten_from_user(x)
    places = [check(s) for s in flatten_axes(face, shardings, tree, (argument, of))]
    return unflatten(tree, [_placed(leaf, sharding, place) for leaf, sharding in zip(leaves, places, strict=True)])


def _checked_constraint(where: Any) -> Any:
    if isinstance(where, Format):
        return where
    return _check_sharding("with_sharding_constraint", "shardings", where, RuntimeError)


def _checked_target(where: Any) -> Any:
    return _check_sharding("reshard", "out_shardings", where, ValueError)


def _check_sharding(face: str, argument: str, sharding: Any, error: type[Exception]) -> Any:
    sharding = named(sharding, f"{face}: {argument} has", error)
    if not isinstance(sharding, Sharding | None):
        raise TypeError(
            f"{face}: {argument} must be shardings, got {sharding!r} of type {type(sharding).__name__}; an array's is "
            "array.sharding"
        )
    return sharding


def _placed(x: Any, sharding: Any, place: Callable[[Any, Any], Any]) -> Any:
    return x if sharding is None else place(x, sharding)


def _there(face: str, x: Tracer, sharding: Any) -> Any:
    """The sharding of a traced value, with the current axis types; ShardingError if it does not fit."""
    sharding.shard_shape(x.shape)
    there = as_here(sharding)
    _check_not_manual(face, there)
    return there


def _check_not_manual(face: str, sharding: Any) -> None:
    axis = manual_axis_in(sharding) if isinstance(sharding, NamedSharding) else None
    if axis is not None:
        raise ShardingError(
            f"{face}: {sharding.spec} names the axis {axis!r}, along which each device has its own part here, within "
            "shard_map; name axes that are not manual"
        )


def _moved(x: Any, sharding: Any) -> Any:
    if type(x) is not Tracer:
        return device_put(x, _on_devices(x, sharding))
    return moved_to(x, _there("reshard", x, sharding))


def _on_devices(x: Any, sharding: Any) -> Any:
    """A sharding over an abstract mesh as one over devices: those of the array's own mesh, or of the current one.

    It is returned unchanged if neither mesh has the axes that it asks for.
    """
    if not isinstance(sharding, NamedSharding) or not isinstance(sharding.mesh, AbstractMesh):
        return sharding
    own = getattr(getattr(x, "sharding", None), "mesh", None)
    for mesh in (own, get_mesh()):
        if isinstance(mesh, Mesh) and mesh.shape_tuple == sharding.mesh.shape_tuple:
            return sharding.update(mesh=mesh)
    return sharding


def _constrained(x: Any, sharding: Any) -> Any:
    if isinstance(sharding, Format):
        return _in_format(x, sharding)
    if type(x) is Tracer:
        there = _there("with_sharding_constraint", x, sharding)
        return sharding_constraint_p.bind(x, sharding=there) if _is_so(x.aval, there) else moved_to(x, there)
    sharding = _on_devices(x, sharding)
    if type(x) is ArrayImpl and isinstance(x.sharding, NamedSharding):
        sharding.shard_shape(x.shape)
        _is_so(x.aval, sharding)
    return device_put(x, sharding)


def _in_format(x: Any, format: Format) -> Any:
    placed = _placed(x, format.sharding, _constrained)
    if not isinstance(format.layout, Layout):
        return placed
    check_rank("with_sharding_constraint", format.layout, placed)
    return with_layout_constraint(placed, format.layout) if type(placed) is Tracer else placed


def _is_so(aval: ShapedArray, sharding: Any) -> bool:
    """Whether the explicit axes of a constraint agree with the value's type; if not, a warning or ShardingTypeError."""
    explicit = isinstance(sharding, NamedSharding) and sharding.mesh.explicit_axes
    if not explicit or aval.explicit_sharding is split_in_type(sharding, aval.ndim):
        return True
    problem = (
        f"with_sharding_constraint: {sharding.spec} is not how a value of type {aval.str_short()} is split; along axes "
        "of type Explicit "
    )
    if strict_sharding.value:
        raise ShardingTypeError(f"{problem}it does not move values: use xlamini.reshard")
    warn_of_open_split(f"{problem}moving a value is for xlamini.reshard, which runs here")
    return False
