"""Reads and writes of refs by functions that take an index: `load` and `store`."""
from __future__ import annotations

from typing import Any

from xlamini.runtime import Array
from xlamini.transforms.pallas import triton_memory


def load(x_ref: Any, idx: Any, *, mask: Any = None, other: Any = None, **ignored: Any) -> Array:
    """`x_ref[idx]`, without reading where `mask` is false: there it is `other`, by default 0.

    Further arguments are hints for a GPU's cache, and ignored.

    >>> def first(x, o):
    ...     o[...] = load(x, pl.ds(0, 4), mask=jnp.arange(4) < 3)
    >>> pl.pallas_call(first, xlamini.ShapeDtypeStruct((4,), "float32"))(jnp.ones(3))
    Array([1., 1., 1., 0.], dtype=float32)
    """
    return triton_memory.load(x_ref.at[idx], mask=mask, other=other)


def store(x_ref: Any, idx: Any, val: Any, *, mask: Any = None, **ignored: Any) -> None:
    """`x_ref[idx] = val` where `mask` is true; further arguments are hints for a GPU's cache, and ignored.

    >>> def kernel(x, o):
    ...     o[...] = x[...]
    ...     store(o, slice(None), 5.0, mask=x[...] > 1)
    >>> pl.pallas_call(kernel, xlamini.ShapeDtypeStruct((3,), "float32"))(jnp.arange(3.0))
    Array([0., 1., 5.], dtype=float32)
    """
    triton_memory.store(x_ref.at[idx], val, mask=mask)
