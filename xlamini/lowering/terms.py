"""Operations on the terms of unreduced values, each device for itself.

XLA's partitioner takes the sum of the operand of an operation that it cannot apply to the terms, and then takes the
result for a term. So such an operation is written for one device, in `sdy.manual_computation`.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core import ELEMENTWISE, Equation, Jaxpr, ShapedArray, once


def on_terms(ctx: Any, name: str, *operands: Any, out: ShapedArray, **attributes: Any) -> Any:
    """`ctx.op` with a result of type `out`; if that is unreduced, on the terms of the operands.

    Operands that are not scalars are split and unreduced as the result is.
    """
    split = out.explicit_sharding
    if split is None or not ctx.module.spans_devices or split.unreduced <= ctx.module.manual_axes:
        return ctx.op(name, *operands, avals=[out], **attributes)
    meshes = ctx.module.meshes

    def shardings(values: Any) -> str:
        ranks = [len(v.type.shape) for v in values]
        each = [str(meshes.sharding(split, n) if n else meshes.whole(0)) for n in ranks]
        return f"#sdy.sharding_per_value<[{', '.join(text.removeprefix('#sdy.sharding') for text in each)}]>"

    def body(*arguments: Any) -> list[Any]:
        ctx.constants = {}  # the region is isolated: it cannot use constants from outside
        return [ctx.op(name, *arguments, avals=[out], **attributes)]

    ctx.forbid_repetition()
    axes = ", ".join(f'"{n}"' for n in split.mesh.axis_names if n in split.unreduced)
    return ctx.many(
        "sdy.manual_computation",
        operands,
        [ctx.mlir.type(out)],
        [ctx.region([v.type for v in operands], body, "sdy.return")],
        in_shardings=shardings(operands),
        out_shardings=shardings(operands[:1]),
        manual_axes=f"#sdy<manual_axes{{{axes}}}>",
    )[0]


def as_terms(ctx: Any, x: Any, aval: ShapedArray) -> Any:
    """A value with a sharding constraint if its type is unreduced.

    Each such value needs one: Shardy takes an operation between two of them for one that reduces.
    """
    split = aval.explicit_sharding
    return x if split is None or not split.unreduced else ctx.with_sharding(x, split, aval.ndim)


def constrained(ctx: Any, eqn: Equation, outs: Sequence[Any]) -> Sequence[Any]:
    """The results of an equation, constrained to the shardings in their types.

    Elementwise equations need no constraint, because the compiler propagates shardings through them, but not terms.
    """
    primitive, kind = eqn.primitive, eqn.kind
    if primitive.sharding.chooses:
        return outs
    is_open = kind is not None and kind.sharding_conflict is not None
    known = {None, *(a.aval.explicit_sharding for a in eqn.invars)} if primitive.traits & ELEMENTWISE else {None}
    return [
        as_terms(ctx, x, a)
        if is_open or a.explicit_sharding in known
        else ctx.with_sharding(x, a.explicit_sharding, a.ndim)
        for x, a in ((x, v.aval) for x, v in zip(outs, eqn.outvars, strict=True))
    ]


@once
def has_typed_shardings(jaxpr: Jaxpr) -> bool:
    """Whether the types of a jaxpr's values contain shardings."""
    return any(v.aval.explicit_sharding is not None for eqn in jaxpr.eqns for v in eqn.outvars)
