"""ffi_call: a compiled function outside XLA, called by the name under which it is registered."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from xlamini.core import Params, Values
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.core.program.effects import ffi_effect
from xlamini.lowering.ffi_attributes import dictionary, quoted
from xlamini.lowering.ffi_calls import TYPED, custom_call
from xlamini.lowering.host_calls import is_spmd
from xlamini.staging.trace.arguments import checked_avals
from xlamini.transforms.callbacks.result_types import declared_aval
from xlamini.transforms.callbacks.vmap_methods import check_vmap_method
from xlamini.transforms.ffi.arguments import Layout, aliases, layouts
from xlamini.transforms.ffi.foreign_call import ForeignCall


def ffi_call(
    target_name: str,
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_layouts: Sequence[Any] | None = None,
    output_layouts: Any = None,
    input_output_aliases: dict[int, int] | None = None,
    custom_call_api_version: int = TYPED,
    legacy_backend_config: str | None = None,
) -> Callable[..., Any]:
    """A function that calls an FFI target: positional arguments are its operands, keyword arguments its attributes.

    Args:
      target_name: the name given to `register_ffi_target`, or a target of jaxlib.
      result_shape_dtypes: the type of the result, such as a ShapeDtypeStruct; or a list or tuple of the types of
        several results, which are then returned as such.
      has_side_effect: whether the target is called even if no result is used. `effects_barrier` waits for such calls.
      vmap_method: the batching under vmap, as for `pure_callback`. "sequential" and "sequential_unrolled": a call for
        each example, in a loop. "expand_dims": one call with the examples stacked along axis 0, and an axis of size 1
        for unmapped arguments. "broadcast_all": one call, with all arguments stacked. "legacy_vectorized": one call,
        with unmapped arguments unchanged. None: NotImplementedError.
      input_layouts: for each argument the dimensions from the slowest to the fastest, such as (1, 0) for a
        column-major matrix; None for row-major. XLA copies an array that lies otherwise.
      output_layouts: the same for the results; for a single result, its layout.
      input_output_aliases: `{input: output}`, where the output overwrites the input's memory. If the program needs the
        input later, XLA copies it first.
      custom_call_api_version: 4 for the typed FFI; 1 to 3 for the earlier interfaces of custom calls.
      legacy_backend_config: the text that an earlier interface passes in place of attributes.

    Returns:
      `call(*args, **attributes)`. Attributes are numbers, strings, NumPy arrays, dtypes, or dicts of these; a Python
      int arrives as int64, a Python float as float64, and `np.float32(x)` as float32.

    Raises:
      FfiTargetError: no function is registered under this name, when the program is compiled.
      JaxRuntimeError: the function returned an error, or expects other operands or attributes.
      ValueError: a wrong layout, alias, method or version; or it is to be differentiated, without custom_vjp.
      TypeError: an argument is no array or number, or an attribute is of a type that cannot be passed.

    >>> like_x, info = xlamini.ShapeDtypeStruct((2, 2), "float32"), xlamini.ShapeDtypeStruct((), "int32")
    >>> factor = ffi_call("lapack_spotrf_ffi", (like_x, info), input_layouts=[(1, 0)], output_layouts=[(1, 0), None])
    >>> factor(np.float32([[4, 0], [2, 2]]), uplo=np.uint8(ord("L")))[0]
    Array([[2., 0.],
           [1., 1.]], dtype=float32)
    """
    _check_target(target_name)
    check_vmap_method("ffi_call", vmap_method)
    _check_version(custom_call_api_version, legacy_backend_config)
    several = isinstance(result_shape_dtypes, Sequence)
    types = enumerate(result_shape_dtypes if several else [result_shape_dtypes])
    results = tuple(declared_aval(x, f"ffi_call: result_shape_dtypes{f'[{i}]' if several else ''}") for i, x in types)
    fixed = {
        "target_name": target_name,
        "result_avals": results,
        "has_side_effect": bool(has_side_effect),
        "vmap_method": vmap_method,
        "output_layouts": layouts(output_layouts if several else (output_layouts,), results, "output_layouts"),
        "custom_call_api_version": custom_call_api_version,
        "legacy_backend_config": legacy_backend_config or "",
    }

    @api_boundary
    def call(*args: Any, **attributes: Any) -> Any:
        outs = _bind(args, attributes, input_layouts, input_output_aliases, fixed)
        if not several:
            return outs[0]
        return tuple(outs) if isinstance(result_shape_dtypes, tuple) else list(outs)

    return call


class FfiCall(ForeignCall):
    """A custom call of an FFI target; `attributes` is MLIR's text of its attributes."""

    name = "ffi_call"
    effect = ffi_effect

    def name_of_call(self, params: Mapping[str, Any]) -> str:
        return f"the FFI target {params['target_name']}"

    def stacked_params(self, size: int, mapped: Sequence[bool], params: Mapping[str, Any]) -> Params:
        pairs = zip(params["input_layouts"], mapped, strict=True)
        return {
            **super().stacked_params(size, mapped, params),
            "input_layouts": tuple(_behind_batch(layout) if m else layout for layout, m in pairs),
            "output_layouts": tuple(map(_behind_batch, params["output_layouts"])),
        }

    def lower(self, ctx: Any, *operands: Any, target_name: str, attributes: str, **params: Any) -> list[Any]:
        if params["has_side_effect"] and is_spmd(ctx):
            raise NotImplementedError(
                f"ffi_call: {target_name} has side effects, and the compiler cannot split such a call over the devices "
                "of the program; call it in shard_map, where each device calls it with its own values"
            )
        version = params["custom_call_api_version"]
        return custom_call(
            ctx,
            target_name,
            operands,
            [ctx.mlir.type(a) for a in ctx.avals_out],
            config=attributes if version == TYPED else quoted(params["legacy_backend_config"]),
            operand_layouts=[layout[::-1] for layout in params["input_layouts"]],
            result_layouts=[layout[::-1] for layout in params["output_layouts"]],
            aliases={o: i for i, o in params["input_output_aliases"]},
            api_version=version,
            has_side_effect=params["has_side_effect"],
        )

    def shown_params(self, params: Params) -> Params:
        """Without what is usual: row-major layouts, and the typed interface."""
        usual = {"attributes": "{}", "custom_call_api_version": TYPED}
        for name in ("input_layouts", "output_layouts"):
            usual[name] = tuple(tuple(range(len(layout))) for layout in params[name])
        shown = super().shown_params(params)
        return {k: v for k, v in shown.items() if k != "result_avals" and v != usual.get(k)}


ffi_call_p: Final = FfiCall()

_RESERVED = frozenset({"SliceToDynamic", "TopK"})
_RESERVED_PREFIXES = ("xla.sdy.", "xla_buffer_python_", "xla_ffi_")


def _behind_batch(layout: Layout) -> Layout:
    """The layout of a stack of arrays, one after the other."""
    return (0, *(d + 1 for d in layout))


def _bind(
    args: Values,
    attributes: Mapping[str, Any],
    input_layouts: Sequence[Any] | None,
    input_output_aliases: Mapping[int, int] | None,
    fixed: dict[str, Any],
) -> Values:
    """Bind the call for these arguments; `fixed` are the params that do not depend on them."""
    target = fixed["target_name"]
    avals = checked_avals(args, [f"args[{i}]" for i in range(len(args))], target)
    orders = layouts(input_layouts, avals, "input_layouts")
    outputs = list(zip(fixed["result_avals"], fixed["output_layouts"], strict=True))
    return ffi_call_p.bind(
        *args,
        attributes=_attributes(target, attributes, fixed["custom_call_api_version"]),
        input_layouts=orders,
        input_output_aliases=aliases(
            "ffi_call", input_output_aliases, list(zip(avals, orders, strict=True)), outputs
        ),
        **fixed,
    )


def _attributes(target: str, attributes: Mapping[str, Any], version: int) -> str:
    if attributes and version < TYPED:
        raise ValueError(
            f"ffi_call: {target} is called with attributes, which custom_call_api_version={version} does not pass; "
            "pass their text as legacy_backend_config"
        )
    return dictionary(dict(sorted(attributes.items())), f"ffi_call: {target}: attributes")


def _check_target(target: Any) -> None:
    if not isinstance(target, str) or not target or "\0" in target:
        raise TypeError(f"ffi_call: target_name must be a string such as 'lapack_spotrf_ffi', got {target!r}")
    if target in _RESERVED or target.startswith(_RESERVED_PREFIXES):
        raise ValueError(
            f"ffi_call: {target} is reserved by XLA, which aborts on calls other than its own; use the function that "
            "makes such calls, such as lax.top_k or pure_callback"
        )


def _check_version(version: Any, legacy_config: Any) -> None:
    if version not in range(1, TYPED + 1):
        raise ValueError(f"ffi_call: custom_call_api_version must be 4 (the typed FFI) or 1 to 3, got {version!r}")
    if legacy_config is not None and version == TYPED:
        raise ValueError(
            "ffi_call: legacy_backend_config is for custom_call_api_version 1 to 3; pass attributes as keyword "
            "arguments of the call"
        )
    if legacy_config is not None and not isinstance(legacy_config, str):
        raise TypeError(f"ffi_call: legacy_backend_config must be a string, got {legacy_config!r}")
