"""with_sharding_constraint: where the values of a program shall lie."""
from __future__ import annotations

from typing import Any

from xlamini.core.pytree import flatten_from_user, unflatten
from xlamini.core.pytree_prefix import flatten_axes
from xlamini.core.tracer import Tracer
from xlamini.primitives.elementwise import ANY, EXTENDED, LinearMap, elementwise
from xlamini.runtime.sharding import Sharding, SingleDeviceSharding
from xlamini.transforms.placing import device_put


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """The arrays of a pytree, each in a sharding: it says where a program is to have the value.

    Args:
      x: a pytree of arrays.
      shardings: a sharding for all of them, or a pytree of shardings that is a prefix of `x`; None leaves it open.

    So far a program runs on one device, so that there is nothing but `SingleDeviceSharding` to ask for: other shardings
    are a NotImplementedError, anything else a TypeError.

    >>> with_sharding_constraint(xlamini.numpy.arange(2), xlamini.numpy.ones(()).sharding)
    Array([0, 1], dtype=int32)
    """
    leaves, tree = flatten_from_user(x)
    places = flatten_axes("with_sharding_constraint", shardings, tree, ("shardings", "x"))
    return unflatten(tree, [_constrained(leaf, place) for leaf, place in zip(leaves, places, strict=True)])


def _constrained(x: Any, sharding: Any) -> Any:
    if sharding is None:
        return x
    if not isinstance(sharding, SingleDeviceSharding):
        raise _no_place(sharding)
    return sharding_constraint_p.bind(x, sharding=sharding) if type(x) is Tracer else device_put(x, sharding)


def _no_place(sharding: Any) -> Exception:
    if isinstance(sharding, Sharding):
        return NotImplementedError(
            f"with_sharding_constraint: {sharding} needs programs on several devices, which are to come; "
            "leave it out, or pass a SingleDeviceSharding"
        )
    return TypeError(
        f"with_sharding_constraint: shardings must be shardings, got {sharding!r} of type {type(sharding).__name__}; "
        "an array's is array.sharding"
    )


class ShardingConstraint(LinearMap):
    """A program runs on one device, so a sharding on one device holds by itself."""

    def lower(self, ctx: Any, x: Any, *, sharding: Any) -> Any:
        return x


@elementwise(family=ShardingConstraint, accepts=ANY | EXTENDED, flops=0)
def sharding_constraint_p(x: Any, *, sharding: Any) -> Any:
    """The operand, in a sharding."""


sharding_constraint_p.name = "sharding_constraint"


@sharding_constraint_p.transposed
def _(ct: Any, x: Any, *, sharding: Any) -> Any:
    return (sharding_constraint_p.bind(ct, sharding=sharding),)
