"""ffi_lowering: the `lower` rule of a primitive that is one call of an FFI target."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from xlamini.lowering.context import Context, Value
from xlamini.lowering.ffi_attributes import dictionary, quoted
from xlamini.lowering.ffi_calls import TYPED, Layout, custom_call, row_major_layout


def ffi_lowering(
    call_target_name: str,
    *,
    operand_layouts: Sequence[Any] | None = None,
    result_layouts: Sequence[Any] | None = None,
    backend_config: Mapping[str, Any] | str | None = None,
    skip_ffi_layout_processing: bool = False,
    **lowering_args: Any,
) -> Callable[..., Any]:
    """A `lower` rule that calls an FFI target, with the equation's params as attributes.

    Args:
      call_target_name: the registered name of the target.
      operand_layouts: for each operand the dimensions from the fastest to the slowest, the reverse of `ffi_call`'s
        order; None for row-major.
      result_layouts: the same for the results.
      backend_config: further attributes; for earlier interfaces than the typed one, their text.
      skip_ffi_layout_processing: whether XLA chooses all layouts.
      **lowering_args: `api_version` (4), `has_side_effect` (False), and `operand_output_aliases`, a dict from
        operands to the results that overwrite them.

    Returns:
      `rule(ctx, *operands, **params)`, which returns the MLIR values of the results; the value of the one result if
      the primitive has no `multiple_results`.

    Raises:
      TypeError: an unknown argument.

    >>> lower = staticmethod(ffi_lowering("dce_sink", has_side_effect=True))
    """
    options = {"api_version": TYPED, "has_side_effect": False, "operand_output_aliases": {}}
    unknown = [name for name in lowering_args if name not in options]
    if unknown:
        raise TypeError(f"ffi_lowering: unknown arguments {', '.join(unknown)}; it takes {', '.join(options)}")
    options |= lowering_args

    def rule(ctx: Context, *operands: Value, **params: Any) -> Any:
        ranks = [v.type.rank for v in operands], [aval.ndim for aval in ctx.avals_out]
        free = skip_ffi_layout_processing
        outs = custom_call(
            ctx,
            call_target_name,
            operands,
            [ctx.mlir.type(a) for a in ctx.avals_out],
            config=_config(backend_config, params, options["api_version"]),
            shapes=[a.shape for a in ctx.avals_out],
            operand_layouts=None if free else _orders(operand_layouts, ranks[0]),
            result_layouts=None if free else _orders(result_layouts, ranks[1]),
            aliases={o: i for i, o in (options["operand_output_aliases"] or {}).items()},
            api_version=options["api_version"],
            has_side_effect=options["has_side_effect"],
        )
        return outs if ctx.eqn.primitive.multiple_results else outs[0]

    return rule


def _config(given: Mapping[str, Any] | str | None, params: Mapping[str, Any], version: int) -> str:
    if version == TYPED:
        if isinstance(given, str):
            raise ValueError("ffi_lowering: backend_config must be a dict for the typed FFI (version 4), got a string")
        return dictionary({**(given or {}), **params}, "the attributes")
    if params or isinstance(given, Mapping):
        raise ValueError(f"ffi_lowering: api_version={version} passes no attributes; pass their text as backend_config")
    return quoted(given or "")


def _orders(given: Sequence[Any] | None, ranks: Sequence[int]) -> list[Layout]:
    orders = [None] * len(ranks) if given is None else given
    return [_order(layout, rank) for layout, rank in zip(orders, ranks, strict=True)]


def _order(layout: Any, rank: int) -> Layout:
    if layout is None:
        return row_major_layout(rank)
    order = getattr(layout, "major_to_minor", None)
    return list(layout) if order is None else list(order)[::-1]
