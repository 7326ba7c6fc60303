"""The errors about functions outside of XLA that a program calls: Python's by a callback, compiled ones by the FFI."""

from __future__ import annotations

from xlamini.core import jaxlib_types

__all__ = ["CallbackError", "FfiTargetError", "JaxRuntimeError"]

JaxRuntimeError = jaxlib_types.JaxRuntimeError
"""An error that XLA or PJRT raises, with its text, such as too little memory. A RuntimeError; JAX's is the same class.

>>> xlamini.jit(jnp.sin).lower(1.0).compile(compiler_options={"xla_no_such_flag": True})
Traceback (most recent call last):
    ...
jaxlib._jax.JaxRuntimeError: INVALID_ARGUMENT: No such compile option: 'xla_no_such_flag'
"""


class CallbackError(JaxRuntimeError):
    """A Python function that a program calls raised, or returned something else than it was announced to return.

    >>> def table(i):
    ...     return np.full(16, i, np.float32)
    >>> xlamini.jit(lambda i: xlamini.pure_callback(table, xlamini.ShapeDtypeStruct((8,), "float32"), i))(3)
    Traceback (most recent call last):
        ...
    xlamini.core.errors.call_errors.CallbackError: pure_callback: table returned float32[16], but result_shape_dtypes
    says float32[8]; change the one or the other; it is called at ...

    The message has the function's name, the line that put the callback into the program, and the traceback of the
    function's own error, which is also the `__cause__`. Mend the function, or announce what it does return:

    >>> xlamini.jit(lambda i: xlamini.pure_callback(table, xlamini.ShapeDtypeStruct((16,), "float32"), i))(3).shape
    (16,)
    """

    def __str__(self) -> str:
        return str(self.args[0]) if self.args else ""


class FfiTargetError(JaxRuntimeError):
    """A program calls an FFI target that is not registered, when it is compiled or loaded.

    >>> from xlamini import ffi
    >>> ffi.ffi_call("rms_norm", xlamini.ShapeDtypeStruct((8,), "float32"))(jnp.ones(8))
    Traceback (most recent call last):
        ...
    xlamini.core.errors.call_errors.FfiTargetError: no FFI target 'rms_norm' is registered for the CPU; ...

    Register the function of the compiled library under that name, for the platform the program runs on:

        library = ctypes.CDLL("./librms.so")
        ffi.register_ffi_target("rms_norm", ffi.pycapsule(library.RmsNorm), platform="cpu")
    """
