"""debug.callback and debug.print: observe values while programs run.

They do not affect the results of a program, so rewrites may repeat or drop them.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from xlamini.core import Avals, Effects, Params, Tracer, Values, flatten_from_user, memoised
from xlamini.core.console import printable
from xlamini.core.program.effects import debug_effect, ordered_debug_effect
from xlamini.core.sizes.expression import SymbolicSize
from xlamini.lowering.host_calls import is_spmd, per_device_call
from xlamini.primitives.shape.symbolic_sizes import size_value
from xlamini.runtime import Array
from xlamini.staging import ArgNames, check_callable, check_values
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
    """Call a Python function from a program to observe values; its result is ignored.

    Under vmap it is called for each example, in order; under grad and jvp on the primal values, in the forward pass.
    A branch or an iteration that a rewrite recomputes calls it again.

    Args:
      callback: gets `args` and `kwargs` with Arrays for the arrays and numbers among them. None, for
        `callback(ordered=True)(f, x)`, which leaves all keywords of the second call to `f`.
      *args: values of any type, and pytrees of them; `kwargs` likewise.
      ordered: whether it runs after all earlier ordered effects; see io_callback. Not on several devices.
      partitioned: in a program on several devices, whether every device calls it with its shards, instead of the first
        device with full arrays. In `shard_map` and `pmap` every device calls it with its own values.
      **kwargs: keyword arguments of `callback`.

    Raises:
      CallbackError: the function raised. A compiled program may raise it as late as in effects_barrier().

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

    Under vmap it prints for each example; under grad and jvp it prints the primal values, in the forward pass.

    Args:
      fmt: a format string, not an f-string, which would be formatted while the program is traced. None, for
        `debug.print(ordered=True)("{x}", x=x)`, which leaves all keywords of the second call to the format.
      *args: values of any type, and pytrees of them; `kwargs` likewise.
      ordered: whether it runs after all earlier ordered effects; see io_callback.
      partitioned: see debug.callback.
      skip_format_check: do not check `fmt` before the program runs.
      **kwargs: values that the format refers to by name.

    Raises:
      IndexError, KeyError: the format refers to a value that was not passed.
      ValueError: the format does not use a value that was passed, as for an f-string, or is malformed.

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
    """The function that prints in this format; it is cached, so that programs with equal prints have equal keys."""

    def debug_print(*args: Any, **kwargs: Any) -> None:
        with np.printoptions(**dict(options)):
            text = fmt.format(*args, **kwargs)
        print(printable(f"{text}\n"), end="")  # noqa: T201 (one piece, as devices print at the same time)

    return debug_print


_ARRAYS = (Array, Tracer, np.ndarray, np.generic, bool, int, float, complex)


def _observe(
    primitive: DebugCallback,
    callback: Callable[..., Any],
    args: Values,
    kwargs: Mapping[str, Any],
    params: Mapping[str, Any],
) -> None:
    leaves, in_tree = flatten_from_user((tuple(args), dict(kwargs)))
    leaves = [size_value(x) if type(x) is SymbolicSize else x for x in leaves]
    is_array = [isinstance(x, _ARRAYS) for x in leaves]
    fixed = tuple((i, x) for i, x in enumerate(leaves) if not is_array[i])
    names = ArgNames(callback, in_tree)
    operands = [x for x, found in zip(leaves, is_array, strict=True) if found]
    check_values(operands, [names[i] for i, found in enumerate(is_array) if found], primitive.face)
    function = HostFunction(callback, in_tree, fixed)
    primitive.bind(*operands, callback=function, result_avals=(), mapped=(), **params)


class DebugCallback(Callback):
    """A callback without results; its jvp calls it on the primals only."""

    name = "debug_callback"
    face = "debug.callback"
    lacks: Mapping[str, str] = {"transpose": "without results"}

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
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

    def shown_params(self, params: Params) -> Params:
        shown = super().shown_params(params)
        return {name: value for name, value in shown.items() if name != "partitioned" or value}

    def effects(self, avals: Avals, params: Params) -> Effects:
        return frozenset([ordered_debug_effect if params["ordered"] else debug_effect])


debug_callback_p: Final = DebugCallback()


class DebugPrint(DebugCallback):
    """A debug callback that prints; a printed jaxpr shows its format."""

    name = "debug_print"
    face = "debug.print"

    def shown_params(self, params: Params) -> Params:
        return {name: value for name, value in super().shown_params(params).items() if name != "callback"}


debug_print_p: Final = DebugPrint()
