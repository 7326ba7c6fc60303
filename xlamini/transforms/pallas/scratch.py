"""Memory that a kernel has for a while: `run_scoped`.

It is scratch memory of the kernel: the kernel that is being traced gets one more ref for each buffer.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xlamini.core import flatten, unflatten
from xlamini.transforms.pallas.grid import kernel_builder
from xlamini.transforms.pallas.specs import MemoryRef
from xlamini.transforms.pallas.trace import ref_of_tracer


def run_scoped(f: Callable[..., Any], *types: Any, collective_axes: Any = (), **kw_types: Any) -> Any:
    """`f` of refs to new buffers of these types, such as `pallas.tpu.VMEM((8, 128), "float32")`, in a kernel.

    The buffers are undefined at the start. Returns what `f` returns. Raises RuntimeError outside of kernels, TypeError
    for a type that is no buffer.

    >>> def kernel(x, o):
    ...     def body(buffer):
    ...         buffer[...] = 2 * x[...]
    ...         o[...] = buffer[...]
    ...     run_scoped(body, pltpu.VMEM((4,), "float32"))
    >>> pl.pallas_call(kernel, xlamini.ShapeDtypeStruct((4,), "float32"))(jnp.ones(4))
    Array([2., 2., 2., 2.], dtype=float32)
    """
    if collective_axes:
        raise NotImplementedError("run_scoped: collective_axes are for kernels over several cores, which are not built")
    builder = kernel_builder("run_scoped")
    leaves, tree = flatten((types, kw_types))
    for each in leaves:
        if not isinstance(each, MemoryRef):
            raise TypeError(f"run_scoped: a type must be a buffer such as VMEM((8, 128), 'float32'), got {each!r}")
    refs = [ref_of_tracer(builder.input(each.ref_type())) for each in leaves]
    args, kwargs = unflatten(tree, refs)
    return f(*args, **kwargs)
