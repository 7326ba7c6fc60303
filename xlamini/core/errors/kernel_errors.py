"""The error about kernels of one's own."""
from __future__ import annotations

__all__ = ["KernelError"]


class KernelError(TypeError):
    """A kernel that a target cannot run: an operation it has no instruction for, a block it cannot tile.

        def kernel(x, o):
            o[...] = jnp.sort(x[...])  # fails on a TPU and on a GPU: no kernel sorts

    The message names the operation and the user's line. Compute it outside of the kernel, in the same `jit`; the CPU,
    and `interpret=True` on any platform, run the kernel as it is.

    >>> issubclass(KernelError, TypeError)
    True
    """
