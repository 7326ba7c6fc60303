"""io_callback: a Python function with side effects, called from a program exactly as often as the program says."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from xlamini.core import Avals, Axis, Dims, Effects, Params, Values
from xlamini.core.program.effects import io_effect, ordered_io_effect
from xlamini.transforms.callbacks.callback import Callback
from xlamini.transforms.callbacks.manual_subset import other_axes, refuse
from xlamini.transforms.callbacks.result_types import call_with_results


def io_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    ordered: bool = False,
    **kwargs: Any,
) -> Any:
    """Call a Python function with side effects from a program, once each time the program reaches the call.

    Args:
      callback: gets Arrays on the CPU in the structure of `args` and `kwargs`, and returns arrays or numbers. It may
        use the library. Outside traced functions it is called at once.
      result_shape_dtypes: the types of its results, as a pytree of ShapeDtypeStructs or arrays; None for no result.
      *args: arrays, numbers, or pytrees of them; `kwargs` likewise.
      sharding: not supported. In a program on several devices the first device calls the function, with full arrays; in
        `shard_map` and `pmap` every device calls it with its own values.
      ordered: whether it runs after all earlier ordered effects, of this program and of programs that the thread
        started before. Unordered effects run in any order, and may still run when the call returns: wait with
        effects_barrier.
      **kwargs: keyword arguments of `callback`.

    Returns:
      Arrays in the structure of `result_shape_dtypes`.

    Raises:
      CallbackError: the function raised, or returned other types.
      ValueError: it is to be differentiated; or it is ordered and under vmap, where examples have no order.
      TypeError: an argument is no array or number, or `result_shape_dtypes` has a leaf without shape and dtype.

    >>> seen = []
    >>> f = xlamini.jit(lambda x: io_callback(lambda x: seen.append(x.item()), None, x, ordered=True))
    >>> f(1), f(2), xlamini.effects_barrier(), seen
    (None, None, None, [1, 2])
    """
    params = {"ordered": bool(ordered)}
    return call_with_results(io_callback_p, callback, result_shape_dtypes, args, kwargs, sharding, params)


class IoCallback(Callback):
    """A callback with side effects: rewrites may neither drop nor repeat it."""

    name = face = "io_callback"

    def batch(self, axis: Axis, operands: Values, dims: Dims, **params: Any) -> Any:
        if params["ordered"]:
            raise ValueError(
                f"io_callback: the calls of {params['callback']} for the examples of vmap have no order; write "
                "ordered=False, or loop over the examples with lax.map or lax.scan"
            )
        return super().batch(axis, operands, dims, **params)

    def lower(self, ctx: Any, *operands: Any, **params: Any) -> Any:
        others = other_axes(ctx)
        if others:
            refuse(self.face, others)
        return super().lower(ctx, *operands, **params)

    def effects(self, avals: Avals, params: Params) -> Effects:
        return frozenset([ordered_io_effect if params["ordered"] else io_effect])


io_callback_p: Final = IoCallback()
