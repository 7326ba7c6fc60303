"""The primitive behind `with_sharding_constraint`: where a value of a program shall lie."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core.partition_spec import PartitionSpec
from xlamini.primitives.elementwise import ANY, EXTENDED, LinearMap, elementwise
from xlamini.runtime.meshes.named_sharding import NamedSharding


class ShardingConstraint(LinearMap):
    """A sharding on one device holds by itself; one over a mesh is told to the partitioner."""

    def batch(
        self, axis: Any, operands: Sequence[Any], dims: Sequence[int | None], *, sharding: Any
    ) -> tuple[Any, int | None]:
        (x,), (dim,) = operands, dims
        if isinstance(sharding, NamedSharding) and dim is not None:
            entries = [*sharding.spec, *[None] * (x.ndim - 1 - len(sharding.spec))]
            entries.insert(dim, PartitionSpec.UNCONSTRAINED)
            sharding = sharding.update(spec=PartitionSpec(*entries))
        return self.bind(x, sharding=sharding), dim

    def lower(self, ctx: Any, x: Any, *, sharding: Any) -> Any:
        if not isinstance(sharding, NamedSharding) or sharding.mesh.size == 1:
            return x
        ctx.forbid_repetition()  # the mesh is the module's
        attribute = ctx.module.meshes.sharding(sharding, ctx.avals_out[0].ndim)
        return ctx.op("sdy.sharding_constraint", x, sharding=attribute)


@elementwise(family=ShardingConstraint, accepts=ANY | EXTENDED, flops=0)
def sharding_constraint_p(x: Any, *, sharding: Any) -> Any:
    """The operand, in a sharding."""


sharding_constraint_p.name = "sharding_constraint"


@sharding_constraint_p.transposed
def _(ct: Any, x: Any, *, sharding: Any) -> Any:
    return (sharding_constraint_p.bind(ct, sharding=sharding),)
