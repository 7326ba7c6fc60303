"""The primitive behind `reshard`: it changes the sharding over explicit mesh axes, in the value and in its aval."""
from __future__ import annotations

from typing import Any, Final

from xlamini.core import Avals, AvalSharding, Dims, Params, PartitionSpec, ShapedArray, Values, aval_of, hooks
from xlamini.core.sharding.aval_sharding import split_of
from xlamini.core.sharding.facet import Sharding
from xlamini.core.sharding.partial_sums import JOINTLY, NO_SUMS, Sums, sums_of
from xlamini.core.sharding.propagation import Splits
from xlamini.primitives.base.linear_unary import LinearUnary
from xlamini.runtime import NamedSharding
from xlamini.runtime.meshes.named_sharding import type_sharding


def _splits(avals: Avals, outs: Avals, params: Params) -> Splits:
    there = params["dst_sharding"]
    return Splits([None if there is None else split_of(there.mesh, there.spec, avals[0].ndim)])


def _sums(avals: Avals, outs: Avals, params: Params) -> list[Sums]:
    there = params["dst_sharding"]
    return [NO_SUMS if there is None else Sums(there.spec.unreduced, there.spec.reduced)]


class Reshard(LinearUnary):
    """Move the operand into a sharding; with None its aval no longer has one, and the compiler decides."""

    name = "reshard"
    sharding: Sharding = Sharding(splits=_splits, sums=_sums, linear=JOINTLY, chooses=True)

    def shape_rule(self, x: ShapedArray, *, dst_sharding: Any) -> ShapedArray:
        return x

    def transpose(self, ct: Any, x: Any, *, dst_sharding: Any) -> Values:
        return [ct]  # which `transpose` splits as the operand is, as it does for every primitive

    def batch(
        self, axis: Any, operands: Values, dims: Dims, *, dst_sharding: Any
    ) -> tuple[Any, int | None]:
        (x,), (dim,) = operands, dims
        if dst_sharding is not None and dim is not None:
            dst_sharding = _batched(dst_sharding, aval_of(x), dim)
        return self.bind(x, dst_sharding=dst_sharding), dim

    def lower(self, ctx: Any, x: Any, *, dst_sharding: Any) -> Any:
        if dst_sharding is None:
            return x
        (aval,), terms = ctx.avals_in, dst_sharding.spec.unreduced
        own = sums_of(aval).unreduced
        if own - terms:
            # Shardy sums the terms between two constraints only
            x = ctx.with_sharding(x, aval.explicit_sharding, aval.ndim)
        if terms - own:
            # Shardy would take the operand's operation for one that gives terms, and it aborts where terms along one
            # axis become those of another.
            split = aval.explicit_sharding or AvalSharding(dst_sharding.mesh.abstract_mesh, ((),) * aval.ndim)
            entries = tuple(() if len(names) > 1 and terms.intersection(names) else names for names in split.entries)
            x = ctx.with_sharding(x, AvalSharding(split.mesh, entries, own & terms), aval.ndim)
        return ctx.with_sharding(x, dst_sharding, aval.ndim)

    def shown_params(self, params: Params) -> Params:
        """No params are printed: the result's type shows the sharding."""
        return {}


reshard_p: Final = Reshard()


def _batched(there: NamedSharding, aval: ShapedArray, dim: int) -> NamedSharding:
    """The sharding of a batch of values; along the batch dimension it stays split, if the axes are free."""
    names = () if aval.explicit_sharding is None else aval.explicit_sharding.entries[dim]
    free = names if there.spec.axes.isdisjoint(names) else ()
    return there.update(spec=there.spec.inserted(dim, free))


def reshard_as(x: Any, split: AvalSharding | None) -> Any:
    """A value with a type that is split so."""
    own = aval_of(x).explicit_sharding
    if own is split:
        return x
    if any(s is not None and s.mesh.manual_axes for s in (own, split)):
        x = hooks.cast_sums(x, split)
        own = aval_of(x).explicit_sharding
        if own is split:
            return x
    there = type_sharding(split)
    if there is None and own is not None and own.unreduced:
        there = NamedSharding(own.mesh, PartitionSpec())  # a sum has to be taken, not left to the compiler
    return reshard_p.bind(x, dst_sharding=there)


def scalars_as_sums(values: Values) -> Values:
    """The values, of which those that are scalars become unreduced and reduced as the first one that is either.

    So they can be broadcast beside it; a reshard of a scalar moves nothing.
    """
    splits = (aval_of(x).explicit_sharding for x in values)
    like = next((s for s in splits if s is not None and (s.unreduced or s.reduced)), None)
    if like is None:
        return values
    return [reshard_as(x, like.of_scalar()) if aval_of(x).ndim == 0 else x for x in values]
