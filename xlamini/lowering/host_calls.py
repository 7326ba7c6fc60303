"""Host callbacks in lowered programs: custom calls of the platform's kernel that calls a Python function by its index.

In an SPMD program the first device calls, with replicated operands, and broadcasts the results; in per-device code
(shard_map) each device calls with its own shards.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from xlamini.core import Avals, ShapedArray, itemsize_bits
from xlamini.runtime.devices.ffi_targets import require_target
from xlamini.runtime.execution.callbacks import BufferCall, HostCall
from xlamini.runtime.execution.collective_callbacks import CollectiveHostCall

if TYPE_CHECKING:  # primitives import this file, and so would MLIR's bindings with it
    from xlamini.lowering.context import Context

Value = Any
_KINDS = {"cpu": "cpu", "cuda": "gpu", "gpu": "gpu"}


def host_call(
    ctx: Context, function: HostCall, operands: Sequence[Value], ordered: bool, side_effect: bool
) -> list[Value]:
    """Call a Python function of ndarrays that returns a tuple of ndarrays of the equation's types.

    An unordered effect has a token too, that of its function, loop or branch, so that the effects of one block happen
    in program order.
    """
    ctx.forbid_repetition()
    token = [_token(ctx, ordered)] if side_effect else []
    if not is_spmd(ctx):
        results = _custom_call(ctx, function, token, operands)
    else:
        wholes = [_replicate(ctx, x, aval) for x, aval in zip(operands, ctx.avals_in, strict=True)]
        shardings = ctx.module.meshes.on_first(len(token) + len(ctx.avals_out))
        made = _custom_call(ctx, function, token, wholes, **{"sdy.sharding": shardings})
        results = made[: len(token)]
        results += [_replicate(ctx, x, aval) for x, aval in zip(made[len(token) :], ctx.avals_out, strict=True)]
    if ordered:
        ctx.token = results.pop(0)
    elif side_effect:
        ctx.loose_token = results.pop(0)
    return results


def per_device_call(ctx: Context, function: HostCall, operands: Sequence[Value]) -> None:
    """Call a Python function without results on every device of the program, with its own shards."""
    ctx.forbid_repetition()
    # No token, because XLA does not partition a call with a token.
    shardings = ctx.module.meshes.on_first(1)
    _custom_call(ctx, function, [], operands, "partitioned_", **{"sdy.sharding": shardings, "has_side_effect": True})


def buffer_call(
    ctx: Context,
    function: BufferCall,
    operands: Sequence[Value],
    aliases: Mapping[int, int],
    side_effect: bool,
    recordable: bool,
) -> list[Value]:
    """Call a Python function on the buffers of operands and results.

    `aliases` is `{result: operand}`; a `recordable` call may be recorded in a GPU's command buffer.
    """
    # Imported here because MLIR's bindings cost 0.1 s.
    from xlamini.lowering.ffi_calls import custom_call, row_major_layout

    ctx.forbid_repetition()
    if ctx.module.spans_devices:
        raise NotImplementedError(
            f"{function.what}: a program on several devices cannot call it; use pure_callback, or call it on one device"
        )
    kind = _kind(ctx)
    target = f"xla_buffer_python_{kind}_callback{'_cmd_buffer' if recordable and kind == 'gpu' else ''}"
    index = len(ctx.module.host_callbacks)
    ctx.module.host_callbacks.append(function)
    return custom_call(
        ctx,
        target,
        operands,
        [ctx.mlir.type(a) for a in ctx.avals_out],
        config=f"{{index = {index} : ui64}}",
        operand_layouts=[row_major_layout(a.ndim) for a in ctx.avals_in],
        result_layouts=[row_major_layout(a.ndim) for a in ctx.avals_out],
        aliases=aliases,
        has_side_effect=side_effect,
    )


def _custom_call(
    ctx: Context, function: HostCall, token: list[Value], operands: Sequence[Value], among: str = "", **attributes: Any
) -> list[Value]:
    results = ctx.many(
        "stablehlo.custom_call",
        [*token, *operands],
        [ctx.mlir.token] * len(token) + [ctx.mlir.type(a) for a in ctx.avals_out],
        call_target_name=f'"{_target(ctx, among)}"',
        api_version="4 : i32",
        backend_config=f"{{index = {len(ctx.module.host_callbacks)} : ui64}}",
        operand_layouts=_layouts(len(token), ctx.avals_in),
        result_layouts=_layouts(len(token), ctx.avals_out),
        **{"has_side_effect": bool(token), **attributes},
    )
    called = CollectiveHostCall(function, ctx.avals_out) if len(ctx.module.meshes.devices) > 1 else function
    ctx.module.host_callbacks.append(_with_token(called) if token else called)
    return results


def _token(ctx: Context, ordered: bool) -> Value:
    if ordered:
        return ctx.current_token()
    return ctx.new_token() if ctx.loose_token is None else ctx.loose_token


def is_spmd(ctx: Context) -> bool:
    """Whether the current code is for all devices of the mesh (SPMD), not per-device code."""
    return len(ctx.module.meshes.devices) > 1 and ctx.module.manual is None


def _replicate(ctx: Context, x: Value, aval: ShapedArray) -> Value:
    """The value, replicated over all devices."""
    sharding = ctx.module.meshes.whole(aval.ndim)
    return ctx.op("sdy.sharding_constraint", x, avals=[aval], sharding=sharding)


def _target(ctx: Context, among: str) -> str:
    target = f"xla_ffi_{among}python_{_kind(ctx)}_callback"
    require_target(target, ctx.platform)
    return target


def _kind(ctx: Context) -> str:
    """The kind of platform in the names of XLA's kernels that call Python."""
    kind = _KINDS.get(ctx.platform)
    if kind is None:
        raise NotImplementedError(f"{ctx.eqn.primitive}: programs on {ctx.platform} cannot call Python functions")
    if kind == "gpu":
        _check_whole_bytes(ctx)
    return kind


def _check_whole_bytes(ctx: Context) -> None:
    for aval in (*ctx.avals_in, *ctx.avals_out):
        if itemsize_bits(aval.dtype) < 8:
            raise NotImplementedError(
                f"{ctx.eqn.primitive}: {aval.dtype.name} does not pass between a GPU and Python, as XLA packs several "
                "elements into a byte there; convert operands and results, x.astype('int8')"
            )


def _layouts(tokens: int, avals: Avals) -> str:
    """Row-major layouts; a token counts as an array of rank 0."""
    ranks = [0] * tokens + [a.ndim for a in avals]
    each = [f"dense<{list(range(r))[::-1] if r else ''}> : tensor<{r}xindex>" for r in ranks]
    return f"[{', '.join(each)}]"


def _with_token(function: Any) -> Any:
    """The callback for a call with a token, which XLA passes as an operand, None, and expects as a result."""
    return lambda token, *operands: (token, *function(*operands))
