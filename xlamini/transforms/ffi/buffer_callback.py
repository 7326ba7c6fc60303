"""buffer_callback: a Python function that a program calls on the memory of its arrays, without copies."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from xlamini.core import Values, flatten, flatten_from_user, unflatten
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.core.program.effects import io_effect
from xlamini.lowering.host_calls import buffer_call
from xlamini.runtime.execution.callbacks import BufferCall
from xlamini.staging.trace.arguments import ArgNames, check_callable, checked_avals, name_of
from xlamini.staging.trace.tracing import rebuilt
from xlamini.transforms.callbacks.host_function import HostFunction
from xlamini.transforms.callbacks.result_types import declared
from xlamini.transforms.callbacks.vmap_methods import check_vmap_method
from xlamini.transforms.ffi.arguments import aliases, layouts
from xlamini.transforms.ffi.foreign_call import ForeignCall


def buffer_callback(
    callback: Callable[..., None],
    result_shape_dtypes: Any,
    *,
    has_side_effect: bool = False,
    vmap_method: str | None = None,
    input_output_aliases: dict[int, int] | None = None,
    command_buffer_compatible: bool = False,
) -> Callable[..., Any]:
    """A function that calls a Python function on device buffers, which writes its results into them.

    For kernels of other libraries: a buffer has `__array__` on the CPU, `__cuda_array_interface__` on a GPU, and
    `__dlpack__`. It is the array's memory for the time of the call and must not be used afterwards, nor may an
    argument be written to that no output aliases.

    Args:
      callback: called as `callback(ctx, out, *args, **kwargs)`, with buffers for the leaves of `out` and of the
        arguments. `ctx.stream` is the address of a GPU's stream, on which the work must be queued.
      result_shape_dtypes: the types of the results, as a pytree of ShapeDtypeStructs or arrays: the structure of `out`.
      has_side_effect: whether it is called even if no result is used.
      vmap_method: as for `ffi_call`.
      input_output_aliases: as for `ffi_call`, with the indices of leaves.
      command_buffer_compatible: whether a GPU may record what the callback queues, and replay it without Python.

    Returns:
      `call(*args, **kwargs)`, whose result has the structure of `result_shape_dtypes`.

    Raises:
      CallbackError: the callback raised.
      ValueError: a wrong alias or method; or it is to be differentiated, without custom_vjp.
      TypeError: an argument is no array or number, or `result_shape_dtypes` has a leaf without shape and dtype.
      NotImplementedError: the program runs on several devices, or on a TPU.

    >>> def double(ctx, out, x):
    ...     np.multiply(np.asarray(x), 2, out=np.asarray(out))
    >>> buffer_callback(double, xlamini.ShapeDtypeStruct((3,), "float32"))(np.float32([1, 2, 3]))
    Array([2., 4., 6.], dtype=float32)
    """
    check_callable("buffer_callback", callback)
    check_vmap_method("buffer_callback", vmap_method)
    results, out_tree = declared(result_shape_dtypes, "buffer_callback"), flatten(result_shape_dtypes)[1]
    outputs = list(zip(results, layouts(None, results, ""), strict=True))
    called = f"{name_of(callback)} (the callback of buffer_callback)"

    @api_boundary
    def call(*args: Any, **kwargs: Any) -> Any:
        leaves, in_tree = flatten_from_user((args, kwargs))
        names = ArgNames(callback, in_tree, range(2, 2 + len(args)))  # behind ctx and out
        avals = checked_avals(leaves, names, called)
        inputs = list(zip(avals, layouts(None, avals, ""), strict=True))
        outs = buffer_callback_p.bind(
            *leaves,
            callback=BufferFunction(callback, in_tree, out_tree=out_tree),
            result_avals=results,
            has_side_effect=bool(has_side_effect),
            vmap_method=vmap_method,
            input_output_aliases=aliases("buffer_callback", input_output_aliases, inputs, outputs),
            command_buffer_compatible=bool(command_buffer_compatible),
        )
        return rebuilt(out_tree, outs)

    return call


class BufferFunction(HostFunction):
    """A function of a context and buffers: the inputs in the structure `in_tree`, the outputs in `out_tree`."""

    def run(self, operands: Values) -> tuple[()]:
        """Call the function; `operands` are the context, then the buffers of inputs and outputs."""
        context, *buffers = operands
        count = self.in_tree.num_leaves
        args, kwargs = unflatten(self.in_tree, buffers[:count])
        self.fun(context, unflatten(self.out_tree, buffers[count:]), *args, **kwargs)
        return ()


class BufferCallback(ForeignCall):
    name = "buffer_callback"
    traits = 0
    effect = io_effect

    def name_of_call(self, params: Mapping[str, Any]) -> str:
        return f"{params['callback']}"

    def lower(self, ctx: Any, *operands: Any, callback: BufferFunction, **params: Any) -> list[Any]:
        call = BufferCall(callback.run, f"{self.name}: {callback}", ctx.eqn.provenance.describe())
        aliased = {o: i for i, o in params["input_output_aliases"]}
        return buffer_call(
            ctx, call, operands, aliased, params["has_side_effect"], params["command_buffer_compatible"]
        )


buffer_callback_p: Final = BufferCallback()
