"""debug.callback and debug.print: look at values as programs compute them.

They change nothing of the program around them. Rewrites may repeat or leave out what only observes.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from xlamini.core.effects import debug_effect, ordered_debug_effect
from xlamini.core.jaxpr import Effects
from xlamini.core.memo import memoised
from xlamini.core.pytree import flatten_from_user
from xlamini.core.tracer import Tracer
from xlamini.lowering.host_calls import is_spmd, per_device_call
from xlamini.runtime.array import Array
from xlamini.staging.trace.arguments import ArgNames, check_callable, check_values
from xlamini.transforms.callbacks.callback import Callback
from xlamini.transforms.callbacks.format_check import check_format
from xlamini.transforms.callbacks.host_function import HostFunction
from xlamini.transforms.callbacks.manual_subset import call_by_first, other_axes


def callback(
    callback: Callable[..., Any] | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a Python function from a program, to look at values; what it returns is dropped.

    Under vmap it is called for each example, in order; under grad and jvp on the values, in the forward pass. A branch
    or a step that a rewrite computes twice calls it twice.

    Args:
      callback: gets `args` and `kwargs` with Arrays for the arrays and numbers among them. None, for
        `callback(ordered=True)(f, x)`, which leaves all keywords of the second call to `f`.
      *args: values, also such as are no arrays, and trees of them; `kwargs` likewise.
      ordered: whether it happens after all ordered effects before it; see io_callback. Not on several devices.
      partitioned: in a program on several devices, whether each of them calls it with the parts that it has, instead
        of the first with whole arrays. In `shard_map` and `pmap` each calls it with its own.
      **kwargs: keyword arguments of `callback`.

    Raises:
      CallbackError: the function raised. From a compiled program it may come as late as effects_barrier().

    >>> def show(x, name):
    ...     print(name, "is", x)
    >>> xlamini.jit(lambda x: callback(show, x, name="x"))(2.0)
    x is 2.0
    """
    call = functools.partial(_call, {"ordered": bool(ordered), "partitioned": bool(partitioned)})
    return call if callback is None else call(callback, *args, **kwargs)


def _call(params: Mapping[str, Any], callback: Callable[..., Any], /, *args: Any, **kwargs: Any) -> None:
    check_callable(debug_callback_p.face, callback)
    _observe(debug_callback_p, callback, args, kwargs, params)


def debug_print(
    fmt: str | None = None,
    *args: Any,
    ordered: bool = False,
    partitioned: bool = False,
    skip_format_check: bool = False,
    **kwargs: Any,
) -> Any:
    """Print values when the program has computed them, formatted as by `fmt.format(*args, **kwargs)`.

    Under vmap it prints for each example; under grad and jvp the values, in the forward pass.

    Args:
      fmt: a format string, not an f-string, which would be formatted while the program is traced. None, for
        `debug.print(ordered=True)("{x}", x=x)`, which leaves all keywords of the second call to the format.
      *args: values of any kind, and trees of them; `kwargs` likewise.
      ordered: whether it comes after all ordered effects before it; see io_callback.
      partitioned: see debug.callback.
      skip_format_check: leave errors in `fmt` to the time when it prints.
      **kwargs: values that the format calls by name.

    Raises:
      IndexError, KeyError: the format asks for a value that is not given.
      ValueError: a value is given that the format does not use, as for an f-string; or it is no format.

    >>> xlamini.jit(lambda x: debug_print("x is {x:.2f} and {}", x + 1, x=x))(2.0)
    x is 2.00 and 3.0
    """
    params = {"ordered": bool(ordered), "partitioned": bool(partitioned)}
    call = functools.partial(_print, params, skip_format_check)
    return call if fmt is None else call(fmt, *args, **kwargs)


def _print(params: Mapping[str, Any], skip_format_check: bool, fmt: str, /, *args: Any, **kwargs: Any) -> None:
    if not isinstance(fmt, str):
        raise TypeError(f"debug.print: the first argument is the format, a string, but got {fmt!r}; write '{{}}'")
    if not skip_format_check:
        check_format(fmt, args, kwargs)
    options = {**np.get_printoptions(), "formatter": None}
    printer = _printer(fmt, tuple(options.items()))
    _observe(debug_print_p, printer, args, kwargs, {**params, "fmt": fmt})


@memoised("helper: printers of debug.print", 512)
def _printer(fmt: str, options: tuple[tuple[str, Any], ...]) -> Callable[..., None]:
    """What prints in this format; the same each time, so that programs that print alike are found to be equal."""

    def debug_print(*args: Any, **kwargs: Any) -> None:
        with np.printoptions(**dict(options)):
            text = fmt.format(*args, **kwargs)
        print(f"{text}\n", end="")  # noqa: T201 (one piece, as devices print at the same time)

    return debug_print


_ARRAYS = (Array, Tracer, np.ndarray, np.generic, bool, int, float, complex)


def _observe(
    primitive: DebugCallback,
    callback: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    params: Mapping[str, Any],
) -> None:
    leaves, in_tree = flatten_from_user((tuple(args), dict(kwargs)))
    is_array = [isinstance(x, _ARRAYS) for x in leaves]
    fixed = tuple((i, x) for i, x in enumerate(leaves) if not is_array[i])
    names = ArgNames(callback, in_tree)
    operands = [x for x, found in zip(leaves, is_array, strict=True) if found]
    check_values(operands, [names[i] for i, found in enumerate(is_array) if found], primitive.face)
    function = HostFunction(callback, in_tree, fixed)
    primitive.bind(*operands, callback=function, result_avals=(), mapped=(), **params)


class DebugCallback(Callback):
    """Without results; derivatives pass it by."""

    name, face = "debug_callback", "debug.callback"
    lacks: Mapping[str, str] = {"transpose": "without results"}

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        return self.bind(*primals, **params), []

    def lower(self, ctx: Any, *operands: Any, **params: Any) -> Any:
        if params["ordered"] and len(ctx.module.meshes.devices) > 1:
            raise ValueError(
                f"{self.face}: ordered=True is for programs on one device, and this one runs on "
                f"{len(ctx.module.meshes.devices)}; leave it out, or take io_callback, which may be ordered"
            )
        if params["partitioned"] and is_spmd(ctx):
            per_device_call(ctx, self.host_call(ctx.eqn.provenance.describe(), **params), operands)
            return []
        others = other_axes(ctx)
        if others:
            call_by_first(ctx, functools.partial(self.bind, **params), operands, others)
            return []
        return super().lower(ctx, *operands, **params)

    def shown_params(self, params: dict[str, Any]) -> dict[str, Any]:
        shown = super().shown_params(params)
        return {name: value for name, value in shown.items() if name != "partitioned" or value}

    def effects(self, params: dict[str, Any]) -> Effects:
        return frozenset([ordered_debug_effect if params["ordered"] else debug_effect])


debug_callback_p = DebugCallback()


class DebugPrint(DebugCallback):
    """A callback that prints; it is shown with its format."""

    name, face = "debug_print", "debug.print"

    def shown_params(self, params: dict[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in super().shown_params(params).items() if name != "callback"}


debug_print_p = DebugPrint()
