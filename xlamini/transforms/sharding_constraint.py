"""with_sharding_constraint, reshard: where the values of a program shall lie."""
from __future__ import annotations

from typing import Any

from xlamini.core.pytree import flatten_from_user, unflatten
from xlamini.core.pytree_prefix import flatten_axes
from xlamini.core.tracer import Tracer
from xlamini.primitives.sharding_constraint import sharding_constraint_p
from xlamini.runtime.meshes.current_mesh import named
from xlamini.runtime.sharding import Sharding
from xlamini.transforms.placing import device_put


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """The arrays of a pytree, each in a sharding: it says where a program is to have the value.

    Args:
      x: a pytree of arrays.
      shardings: a sharding for all of them, or a pytree of shardings that is a prefix of `x`; None leaves it open. A
        PartitionSpec is about the mesh that `set_mesh` set.

    Outside a traced function it is `device_put`. Under `vmap` the compiler decides of the mapped axis. TypeError for
    what is no sharding, RuntimeError for a PartitionSpec while no mesh is set, ShardingError where a dimension cannot
    be split so.

    >>> with_sharding_constraint(xlamini.numpy.arange(2), xlamini.numpy.ones(()).sharding)
    Array([0, 1], dtype=int32)
    """
    return _each("with_sharding_constraint", "shardings", "x", x, shardings, RuntimeError)


def reshard(xs: Any, out_shardings: Any) -> Any:
    """The arrays of a pytree, each moved into a sharding, in a program and outside.

    Args:
      xs: a pytree of arrays.
      out_shardings: a sharding for all of them, or a pytree of shardings that is a prefix of `xs`; None leaves an array
        as it is. A PartitionSpec is about the mesh that `set_mesh` set.

    TypeError for what is no sharding, ValueError for a PartitionSpec while no mesh is set, ShardingError where a
    dimension cannot be split so.

    >>> reshard(xlamini.numpy.arange(2), xlamini.numpy.ones(()).sharding)
    Array([0, 1], dtype=int32)
    """
    return _each("reshard", "out_shardings", "xs", xs, out_shardings, ValueError)


def _each(face: str, argument: str, of: str, x: Any, shardings: Any, error: type[Exception]) -> Any:
    leaves, tree = flatten_from_user(x)
    places = [_checked(face, argument, s, error) for s in flatten_axes(face, shardings, tree, (argument, of))]
    return unflatten(tree, [_constrained(leaf, place) for leaf, place in zip(leaves, places, strict=True)])


def _checked(face: str, argument: str, sharding: Any, error: type[Exception]) -> Any:
    sharding = named(sharding, f"{face}: {argument} has", error)
    if not isinstance(sharding, Sharding | None):
        raise TypeError(
            f"{face}: {argument} must be shardings, got {sharding!r} of type {type(sharding).__name__}; an array's is "
            "array.sharding"
        )
    return sharding


def _constrained(x: Any, sharding: Any) -> Any:
    if sharding is None:
        return x
    if type(x) is not Tracer:
        return device_put(x, sharding)
    sharding.shard_shape(x.shape)
    return sharding_constraint_p.bind(x, sharding=sharding)
