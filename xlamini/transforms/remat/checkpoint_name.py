"""checkpoint_name: an identity that names a value, so that checkpoint policies can select it."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from xlamini.core import Axis, Cost, Dims, Primitive, ShapedArray, Values, flatten, unflatten
from xlamini.core.program.checks import NO_NEW_NAN
from xlamini.core.sharding.facet import same_dimensions
from xlamini.staging import ArgNames, avals_of

if TYPE_CHECKING:
    from xlamini.core.sharding.facet import Sharding


def checkpoint_name(x: Any, name: str) -> Any:
    """The unchanged arrays of a pytree, named `name` for the policies of `checkpoint`.

    >>> policy = xlamini.checkpoint_policies.save_only_these_names("hidden")
    >>> f = lambda x: xlamini.numpy.cos(checkpoint_name(xlamini.numpy.sin(x), "hidden"))
    >>> xlamini.grad(xlamini.checkpoint(f, policy=policy))(0.0)
    Array(-0., dtype=float32, weak_type=True)
    """
    if not isinstance(name, str):
        raise TypeError(f"checkpoint_name: the name must be a string, got {name!r} of type {type(name).__name__}")
    leaves, tree = flatten(x)
    avals_of(leaves, ArgNames(checkpoint_name, flatten(((x,), {}))[1]), "checkpoint_name")
    return unflatten(tree, [name_p.bind(leaf, name=name) for leaf in leaves])


def checkpoint_name_fwd(x: Any, name: str) -> Any:
    """`checkpoint_name`, whose name is that of a value of the forward pass: tangents and cotangents have none.

    >>> checkpoint_name_fwd(xlamini.numpy.ones(2), "hidden")
    Array([1., 1.], dtype=float32)
    """
    return checkpoint_name(x, name)


class Name(Primitive):
    """The identity with a name; tangents are not named."""

    name = "name"
    sharding: Sharding = same_dimensions()
    checks = NO_NEW_NAN

    def shape_rule(self, x: ShapedArray, *, name: str) -> ShapedArray:
        return x

    def jvp(self, primals: Values, tangents: Values, *, name: str) -> Any:
        return self.bind(*primals, name=name), tangents[0]

    def transpose(self, ct: Any, x: Any, *, name: str) -> Values:
        return (ct,)

    def batch(self, axis: Axis, operands: Values, dims: Dims, *, name: str) -> Any:
        return self.bind(*operands, name=name), dims[0]

    def lower(self, ctx: Any, x: Any, *, name: str) -> Any:
        return x

    def cost(self, x: ShapedArray, *, name: str) -> Cost:
        return Cost(0, 0)


name_p: Final = Name()
"""The primitive of `checkpoint_name`.

>>> policy = lambda primitive, *avals, **params: primitive is xlamini.ad_checkpoint.name_p
>>> xlamini.grad(xlamini.checkpoint(lambda x: jnp.sin(checkpoint_name(jnp.sin(x), "sine")), policy=policy))(0.0)
Array(1., dtype=float32, weak_type=True)
"""
