"""The primitive behind `with_sharding_constraint`: where a value of a program shall lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core.avals import ShapedArray
from xlamini.core.sharding.factors import Factors, alike
from xlamini.core.sharding.partition_spec import PartitionSpec
from xlamini.primitives.linear_unary import LinearUnary
from xlamini.primitives.reshard import reshard_p
from xlamini.runtime.meshes.named_sharding import NamedSharding


class ShardingConstraint(LinearUnary):
    """A sharding on one device holds by itself; one over a mesh is told to the partitioner."""

    cheap = True
    in_place = True
    name = "sharding_constraint"

    def shape_rule(self, x: ShapedArray, *, sharding: Any) -> ShapedArray:
        return x

    def factors(self, avals: Sequence[ShapedArray], outs: Sequence[ShapedArray], params: dict[str, Any]) -> Factors:
        return alike(avals, outs)

    def transpose(self, ct: Any, x: Any, *, sharding: Any) -> list[Any]:
        return [self.bind(ct, sharding=sharding)]

    def batch(
        self, axis: Any, operands: Sequence[Any], dims: Sequence[int | None], *, sharding: Any
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


sharding_constraint_p = ShardingConstraint()


def moved_to(x: Any, sharding: Any) -> Any:
    """A value of a program in a sharding: along explicit axes its type says so, else the compiler is told."""
    if isinstance(sharding, NamedSharding) and sharding.mesh.explicit_axes:
        return reshard_p.bind(x, dst_sharding=sharding)
    return sharding_constraint_p.bind(x, sharding=sharding)
