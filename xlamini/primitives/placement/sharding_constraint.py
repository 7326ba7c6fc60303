"""The primitive behind `with_sharding_constraint`: where a value of a program shall lie."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from xlamini.core import ELEMENTWISE, PURE, REMATERIALIZABLE, Dims, PartitionSpec, ShapedArray, Values
from xlamini.core.sharding.facet import same_dimensions
from xlamini.core.sharding.partial_sums import JOINTLY
from xlamini.primitives.base.linear_unary import LinearUnary
from xlamini.primitives.placement.reshard import reshard_p
from xlamini.runtime import NamedSharding

if TYPE_CHECKING:
    from xlamini.core.sharding.facet import Sharding


class ShardingConstraint(LinearUnary):
    """A sharding constraint: over a mesh an instruction to the partitioner, on one device nothing."""

    traits = PURE | ELEMENTWISE | REMATERIALIZABLE
    name = "sharding_constraint"
    sharding: Sharding = same_dimensions(linear=JOINTLY)

    def shape_rule(self, x: ShapedArray, *, sharding: Any) -> ShapedArray:
        return x

    def transpose(self, ct: Any, x: Any, *, sharding: Any) -> Values:
        return [self.bind(ct, sharding=sharding)]

    def batch(
        self, axis: Any, operands: Values, dims: Dims, *, sharding: Any
    ) -> tuple[Any, int | None]:
        (x,), (dim,) = operands, dims
        if isinstance(sharding, NamedSharding) and dim is not None:
            along = axis.along or PartitionSpec.UNCONSTRAINED
            sharding = sharding.update(spec=sharding.spec.inserted(dim, along))
        return self.bind(x, sharding=sharding), dim

    def lower(self, ctx: Any, x: Any, *, sharding: Any) -> Any:
        if not isinstance(sharding, NamedSharding):
            return x
        return ctx.with_sharding(x, sharding, ctx.aval_out.ndim)


sharding_constraint_p: Final = ShardingConstraint()


def moved_to(x: Any, sharding: Any) -> Any:
    """Move a traced value to a sharding: by its aval along explicit axes, by a constraint along others."""
    if isinstance(sharding, NamedSharding) and sharding.mesh.explicit_axes:
        return reshard_p.bind(x, dst_sharding=sharding)
    return sharding_constraint_p.bind(x, sharding=sharding)
