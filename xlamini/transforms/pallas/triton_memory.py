"""Memory in kernels for GPUs: `load` and `store` with masks, and atomic updates."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from xlamini.core import ShapeError, aval_of
from xlamini.core.dtypes.limits import check_fits
from xlamini.core.program.avals import SCALAR_TYPES
from xlamini.core.program.ref_parts import shape_of
from xlamini.core.sizes.shapes import broadcast_shapes
from xlamini.primitives import convert
from xlamini.runtime import Array
from xlamini.transforms.pallas.accesses import Access, atomic_cas_p, atomic_p, masked_load_p, masked_store_p
from xlamini.transforms.pallas.points import spread


def load(
    ref: Any,
    *,
    mask: Any = None,
    other: Any = None,
    cache_modifier: str | None = None,
    eviction_policy: str | None = None,
    volatile: bool = False,
) -> Array:
    """The value of a ref, or of a part `ref.at[index]`, without reading where `mask` is false.

    Args:
      ref: a ref of a kernel, or a part of it by ints, `ds(start, size)`, or arrays of ints.
      mask: bools that broadcast to the part's shape: which elements are read. Indices of others may be out of bounds.
      other: what the result has where the mask is false, by default 0.
      cache_modifier, eviction_policy, volatile: accepted for compatibility, and ignored.

    >>> def first(x, o):
    ...     o[...] = load(x.at[pl.ds(0, 8)], mask=jnp.arange(8) < 3, other=-1.0)
    >>> pl.pallas_call(first, xlamini.ShapeDtypeStruct((8,), "float32"))(jnp.ones(5))
    Array([ 1.,  1.,  1., -1., -1., -1., -1., -1.], dtype=float32)
    """
    if mask is None and other is None:
        return ref[...]
    place = _Place("load", ref)
    if mask is None:
        raise TypeError("load: other is the value where the mask is false; give a mask too")
    values = [] if other is None else [place.typed(other)]
    return place.bind(masked_load_p, values, mask)[0]


def store(ref: Any, val: Any, *, mask: Any = None, eviction_policy: str | None = None) -> None:
    """Write a value to a ref, or to a part `ref.at[index]`, where `mask` is true.

    Args:
      ref: a ref of a kernel, or a part of it by ints, `ds(start, size)`, or arrays of ints.
      val: a value that broadcasts to the part's shape.
      mask: bools that broadcast to it: which elements are written. Indices of others may be out of bounds.
      eviction_policy: accepted for compatibility, and ignored.

    >>> def first(x, o):
    ...     o[...] = jnp.zeros_like(o)
    ...     store(o, x[...], mask=jnp.arange(3) < 2)
    >>> pl.pallas_call(first, xlamini.ShapeDtypeStruct((3,), "float32"))(jnp.ones(3))
    Array([1., 1., 0.], dtype=float32)
    """
    if mask is None:
        ref[...] = val
        return
    place = _Place("store", ref)
    place.bind(masked_store_p, [place.typed(val)], mask)


class _Place:
    """A ref, or a part of it, in the program of a kernel."""

    def __init__(self, what: str, ref: Any):
        self.what = what
        view: Any = ref if hasattr(ref, "transforms") else getattr(ref, "at", {...: None})[...]
        found = view._in_program() if view is not None else None
        if found is None:
            raise TypeError(f"{what} takes a ref of a kernel, or a part ref.at[index] of it, got {ref!r}")
        self.ref, self.view, self.indices = found
        part = Access(self.view).part(self.ref.aval.shape, list(map(aval_of, self.indices)))
        self.shape, self.dtype = shape_of(part), self.ref.dtype if view is None else view.dtype

    def typed(self, value: Any) -> Any:
        """A value in the dtype and the shape of the part."""
        if type(value) in SCALAR_TYPES:
            if type(value) is int:
                check_fits(value, self.dtype)
            value = np.asarray(value, self.dtype)[()]
        return self._spread(convert(value, self.dtype, weak_type=False))

    def _spread(self, value: Any) -> Any:
        shape = aval_of(value).shape
        if broadcast_shapes(shape, self.shape) != self.shape:
            raise ShapeError(f"{self.what}: a value of shape {shape} does not fit the part, of shape {self.shape}")
        return spread(value, self.shape)

    def bind(self, primitive: Any, values: list[Any], mask: Any = None, operation: str = "") -> Any:
        """Add the equation of an access."""
        masks = [] if mask is None else [self._spread(convert(mask, np.dtype(bool), weak_type=False))]
        access = Access(self.view, len(values), bool(masks), operation)
        return primitive.bind(self.ref, *values, *masks, *self.indices, view=access)


def _atomic(operation: str, effect: str, result: int) -> Callable[..., Array]:
    name = f"atomic_{operation}"

    def update(x_ref_or_view: Any, idx: Any, val: Any, *, mask: Any = None) -> Array:
        place = _Place(name, x_ref_or_view.at[idx])
        return place.bind(atomic_p, [place.typed(val)], mask, operation)[0]

    update.__name__ = update.__qualname__ = name
    update.__doc__ = f"""{effect}, as one step for all programs that do so at the same time; returns `ref[idx]` before.

    Args:
      x_ref_or_view: a ref of a kernel, or a part of it.
      idx: an index of ints, `ds(start, size)`, or arrays of ints.
      val: a value that broadcasts to the part's shape.
      mask: bools that broadcast to it: which elements are updated.

    >>> def kernel(x, _, o):
    ...     pl.triton.{name}(o, 0, x[pl.program_id(0)])
    >>> start, out = jnp.array([6]), xlamini.ShapeDtypeStruct((1,), "int32")
    >>> call = pl.pallas_call(kernel, out, grid=2, input_output_aliases={{1: 0}})
    >>> call(jnp.array([5, 3]), start)
    Array([{result}], dtype=int32)
    """
    return update


atomic_add: Final = _atomic("add", "`ref[idx] += val`", 14)
atomic_max: Final = _atomic("max", "`ref[idx] = max(ref[idx], val)`", 6)
atomic_min: Final = _atomic("min", "`ref[idx] = min(ref[idx], val)`", 3)
atomic_and: Final = _atomic("and", "`ref[idx] &= val`", 0)
atomic_or: Final = _atomic("or", "`ref[idx] |= val`", 7)
atomic_xor: Final = _atomic("xor", "`ref[idx] ^= val`", 0)
atomic_xchg: Final = _atomic("xchg", "`ref[idx] = val`", 3)


def atomic_cas(ref: Any, cmp: Any, val: Any) -> Array:
    """`if ref[...] == cmp: ref[...] = val` as one step, of one element; returns `ref[...]` before.

    Raises ShapeError for a part of several elements.

    >>> def once(_, o):
    ...     atomic_cas(o.at[0], 0, pl.program_id(0) + 1)
    >>> call = pl.pallas_call(once, xlamini.ShapeDtypeStruct((1,), "int32"), grid=3, input_output_aliases={0: 0})
    >>> call(jnp.array([0]))
    Array([1], dtype=int32)
    """
    place = _Place("atomic_cas", ref)
    if place.shape:
        raise ShapeError(f"atomic_cas takes one element, got a part of shape {place.shape}; write ref.at[i]")
    return place.bind(atomic_cas_p, [place.typed(cmp), place.typed(val)])[0]
