"""pure_callback: a Python function without side effects, called from a program for its results."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from xlamini.core import Axis, Dims, Values
from xlamini.transforms.callbacks.callback import Callback
from xlamini.transforms.callbacks.result_types import call_with_results
from xlamini.transforms.callbacks.vmap_methods import ONE_BY_ONE, check_vmap_method, no_method, stacked


def pure_callback(
    callback: Callable[..., Any],
    result_shape_dtypes: Any,
    *args: Any,
    sharding: Any = None,
    vmap_method: str | None = None,
    **kwargs: Any,
) -> Any:
    """Call a Python function from a program, for its results: it may be called more often than written, or not at all.

    Args:
      callback: gets Arrays on the CPU in the structure of `args` and `kwargs`, and returns arrays or numbers. It may
        use the library. Outside traced functions it is called at once.
      result_shape_dtypes: the types of its results, as a pytree of ShapeDtypeStructs or arrays.
      *args: arrays, numbers, or pytrees of them; `kwargs` likewise.
      sharding: not supported. In a program on several devices the first device calls the function, with full arrays; in
        `shard_map` and `pmap` every device calls it with its own values.
      vmap_method: the batching under vmap. "sequential" and "sequential_unrolled": a call for each example.
        "expand_dims": one call with the examples stacked along axis 0, and an axis of size 1 for unmapped arguments.
        "broadcast_all": one call, with all arguments stacked. "legacy_vectorized": one call, with unmapped arguments
        unchanged. None: NotImplementedError.
      **kwargs: keyword arguments of `callback`.

    Returns:
      Arrays in the structure of `result_shape_dtypes`.

    Raises:
      CallbackError: the function raised, or returned other types.
      ValueError: it is to be differentiated, without a custom_jvp or custom_vjp around it; or a wrong `vmap_method`.
      TypeError: an argument is no array or number, or `result_shape_dtypes` has a leaf without shape and dtype.

    >>> like_x = xlamini.ShapeDtypeStruct((3,), "float32")
    >>> xlamini.jit(lambda x: xlamini.pure_callback(np.sort, like_x, x) + 1)(np.float32([3, 1, 2]))
    Array([2., 3., 4.], dtype=float32)
    """
    check_vmap_method("pure_callback", vmap_method)
    params = {"vmap_method": vmap_method}
    return call_with_results(pure_callback_p, callback, result_shape_dtypes, args, kwargs, sharding, params)


class PureCallback(Callback):
    """A callback without side effects: rewrites may drop it, and one call may serve several examples."""

    name = face = "pure_callback"
    side_effect = False

    def batch(self, axis: Axis, operands: Values, dims: Dims, **params: Any) -> Any:
        method = params["vmap_method"]
        if method is None:
            raise no_method(self.name, params["callback"])
        if method in ONE_BY_ONE:
            return super().batch(axis, operands, dims, **params)
        results = tuple(a.update(shape=(axis.size, *a.shape)) for a in params["result_avals"])
        outs = self.bind(*stacked(method, operands, dims, axis.size), **{**params, "result_avals": results})
        return outs, [0] * len(outs)


pure_callback_p: Final = PureCallback()
