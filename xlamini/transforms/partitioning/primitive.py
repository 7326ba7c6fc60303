"""The primitive `custom_partitioning`: a call of a jaxpr that XLA's partitioner divides as Python tells it."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, NoReturn

from xlamini.core import Axis, Dims, Jaxpr, Params, ShapedArray, Values
from xlamini.core.flags.config import trace_flags
from xlamini.staging import HigherOrder
from xlamini.transforms.partitioning.division import Division
from xlamini.transforms.partitioning.partitioning import Partitioning
from xlamini.transforms.partitioning.sharding_rule import SdyShardingRule, parsed, written

_NO_DERIVATIVE = (
    "Differentiation rule for 'custom_partitioning' not implemented; wrap {name} in a function with xlamini.custom_vjp "
    "or xlamini.custom_jvp"
)
_NO_BATCH = (
    "Batching rule for 'custom_partitioning' not implemented; write {name} for stacks, with '...' in its rule, or "
    "wrap it with xlamini.custom_batching.custom_vmap"
)


class CustomPartitioning(HigherOrder):
    """On one device, and within shard_map, a call; on a mesh a custom call, which the partitioner asks about."""

    name = "custom_partitioning"
    lacks: Mapping[str, str] = {
        "jvp": "the function that runs on shards is known only to the partitioner; custom_vjp differentiates it",
        "transpose": "it is not differentiated, so no operand is linear",
        "batch": "the sharding rule is for arrays of one rank",
    }

    def shape_rule(self, *avals: ShapedArray, jaxpr: Jaxpr, **params: Any) -> list[ShapedArray]:
        return jaxpr.out_avals

    def jvp(self, primals: Values, tangents: Values, *, partitioning: Partitioning, **params: Any) -> NoReturn:
        raise NotImplementedError(_NO_DERIVATIVE.format(name=partitioning.name))

    def transpose(self, cts: Values, *operands: Any, partitioning: Partitioning, **params: Any) -> NoReturn:
        raise NotImplementedError(_NO_DERIVATIVE.format(name=partitioning.name))

    def batch(self, axis: Axis, operands: Values, dims: Dims, *, partitioning: Partitioning, **params: Any) -> NoReturn:
        raise NotImplementedError(_NO_BATCH.format(name=partitioning.name))

    def lower(self, ctx: Any, *operands: Any, jaxpr: Jaxpr, partitioning: Partitioning, **_: Any) -> Any:
        module = ctx.module
        if not module.spans_devices or module.manual is not None:
            return ctx.call(jaxpr, operands, partitioning.name)
        # Imported here because only programs over a mesh need it.
        from xlamini.runtime.execution.partitioner import TARGET, PartitionedCall, register_partitioner

        ctx.forbid_repetition()
        register_partitioner()
        call = PartitionedCall(Division(partitioning, jaxpr, module.mesh, module.platform, trace_flags()))
        module.partitioners.append(call)
        return ctx.many(
            "stablehlo.custom_call",
            operands,
            [ctx.mlir.type(a) for a in jaxpr.out_avals],
            call_target_name=f'"{TARGET}"',
            backend_config=f'"{call.key}"',
            api_version="2 : i32",
            **_rule(ctx, partitioning, jaxpr, operands),
        )

    def with_captured(self, operands: Values, params: Params) -> NoReturn:
        raise AssertionError("the call refuses captured values")

    def shown_params(self, params: Params) -> Params:
        partitioning = params["partitioning"]
        return {"name": partitioning.name, "jaxpr": params["jaxpr"], "sharding_rule": partitioning.rule}


custom_partitioning_p: Final = CustomPartitioning()


def _rule(ctx: Any, partitioning: Partitioning, jaxpr: Jaxpr, operands: Sequence[Any]) -> dict[str, str]:
    """The sharding rule as an attribute of the custom call; a function returns it for the types of its values."""
    rule = partitioning.rule
    if rule is None:
        return {}
    if not isinstance(rule, SdyShardingRule):
        outs = [ctx.mlir.type(a) for a in jaxpr.out_avals]
        found = rule(*partitioning.static_args, ctx.module.mesh, [x.type for x in operands], outs)
        rule = _returned(found, partitioning.name)
    ins, results = ([a.shape for a in avals] for avals in (jaxpr.in_avals, jaxpr.out_avals))
    return {"sdy.sharding_rule": written(rule, ins, results)}


def _returned(found: Any, name: str) -> SdyShardingRule:
    rule, options = found if isinstance(found, tuple | list) and len(found) == 2 else (found, {})
    if isinstance(rule, str):
        return parsed(rule, **options)
    if not isinstance(rule, SdyShardingRule):
        raise ValueError(
            f"custom_partitioning: the sharding_rule of {name} must produce either an SdyShardingRule object or an "
            f"Einsum-like notation string, but returned {rule!r}"
        )
    return rule
