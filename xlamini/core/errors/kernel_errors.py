"""The errors about kernels of one's own."""
from __future__ import annotations

from typing import Any

__all__ = ["KernelCheckError", "KernelError"]


class KernelError(TypeError):
    """A kernel that a target cannot run: an operation it has no instruction for, a block it cannot tile.

        def kernel(x, o):
            o[...] = jnp.sort(x[...])  # fails on a TPU and on a GPU: no kernel sorts

    The message names the operation and the user's line. Compute it outside of the kernel, in the same `jit`; the CPU,
    and `interpret=True` on any platform, run the kernel as it is.

    >>> issubclass(KernelError, TypeError)
    True
    """


class KernelCheckError(KernelError):
    """A mistake in a kernel that the checking interpreter found: `pallas_call(..., interpret=InterpretParams())`.

    >>> from xlamini.experimental import pallas as pl
    >>> from xlamini.experimental.pallas import tpu as pltpu
    >>> def add(x, o):
    ...     o[...] += x[...]
    >>> out = xlamini.ShapeDtypeStruct((4,), "float32")
    >>> pl.pallas_call(add, out, interpret=pltpu.InterpretParams())(jnp.ones(4))
    Traceback (most recent call last):
        ...
    xlamini.core.errors.kernel_errors.KernelCheckError: kernel add, program (): element (0,) of o depends on o before
    anything wrote it (read at ...); write that memory first, or mask it with where, at ...

    The message names the program by its place in the grid, the ref by the kernel's parameter, and the user's line.
    They are the attributes `program`, `ref` and `place` too. Write the memory before it is read:

        @pl.when(pl.program_id(0) == 0)
        def _():
            o[...] = jnp.zeros_like(o)
    """

    place: str | None
    program: tuple[int, ...] | None
    ref: Any

    def __init__(self, message: str, program: tuple[int, ...] | None = None, ref: Any = None, place: str | None = None):
        super().__init__(message)
        self.program, self.ref, self.place = program, ref, place
