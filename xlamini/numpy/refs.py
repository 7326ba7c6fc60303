"""Refs: arrays that can be written in place, under the names JAX users know as `jax.ref`.

    r = xlamini.new_ref(xlamini.numpy.zeros(3))
    r[0] = 1.0          # write
    r[1:] += 2.0        # add
    r[...]              # read
    r.at[1:].T          # a view, which is read and written like the ref (ref_views.py)

A ref that a jitted function takes or closes over is a variable of its program, and of the loops, branches and calls in
it. One that is made inside, or used in another transformation, is threaded through as a value, so the program stays
pure. Either way every transformation works as ever.
"""
from __future__ import annotations

from collections.abc import Callable
from types import EllipsisType
from typing import Any

import numpy as np

from xlamini.core import Cell, Holder, ShapedArray, ShapeError, api_boundary_methods, aval_of, hooks
from xlamini.core.program.ref_cells import FREED, Taken
from xlamini.core.program.ref_types import AbstractRef
from xlamini.numpy.construction import array as _array
from xlamini.numpy.creation import zeros as _zeros
from xlamini.numpy.indexing.parse import check_bounds
from xlamini.numpy.indexing.ref_steps import Indexer, Step, check_dtype, item_of
from xlamini.numpy.ref_views import TransformedRef, Viewed
from xlamini.numpy.repeating import broadcast_to as _broadcast_to
from xlamini.primitives import convert

Index = Any


class Ref(Holder, Viewed):
    """A mutable array of fixed shape and dtype; made by `new_ref`.

    `ref[index]` reads, `ref[index] = value` writes, `ref[index] += value` adds; an index is what an array takes, `...`
    for all of it. A ref may be closed over or passed as an argument, and is a leaf of pytrees; it has no arithmetic of
    its own.

    >>> ref = xlamini.new_ref(jnp.zeros(3))
    >>> ref[1] += 5.0
    >>> ref[...], ref.shape
    (Array([0., 5., 0.], dtype=float32), (3,))
    >>> ref[...] = jnp.ones(4)
    Traceback (most recent call last):
        ...
    xlamini.core.errors.ShapeError: ref of shape (3,) cannot take a value of shape (4,) as a whole; ...
    """

    __slots__ = ()
    __hash__: Callable[..., int] = object.__hash__

    @property
    def shape(self) -> tuple[int, ...]:
        return self._cell.aval.shape

    @property
    def dtype(self) -> Any:
        return self._cell.aval.dtype

    @property
    def ndim(self) -> int:
        return len(self._cell.aval.shape)

    @property
    def size(self) -> int:
        return self._cell.aval.size

    @property
    def sharding(self) -> Any:
        """The sharding of the value."""
        return self._cell.read().sharding

    @property
    def committed(self) -> bool:
        """Whether the value is committed to its devices."""
        return self._cell.read().committed

    @property
    def format(self) -> Any:
        """The layout and the sharding of the value."""
        return self._cell.read().format

    def through(self, step: Step) -> TransformedRef:
        return TransformedRef(self, (step,))

    def __getitem__(self, index: Index) -> Any:
        if index is not ... and self._cell.variable() is not None:
            return self.through(Indexer(index))[...]
        value = self._cell.read()
        return value if index is ... else item_of(value, index)

    def __setitem__(self, index: Index, value: Any) -> None:
        aval = self._cell.aval
        check_dtype(aval.dtype, value)
        if index is ...:
            _check_shape(aval, value)
            new = _broadcast_to_ref(aval, value)
        elif self._cell.variable() is not None:
            self.through(Indexer(index))[...] = value
            return
        else:
            check_bounds(index, aval.shape)
            new = self._cell.read().at[index].set(value)
        self._cell.write(convert(new, aval.dtype, aval.weak_type))

    def unsafe_buffer_pointer(self) -> int:
        """The address of the value in memory; the next write may move it."""
        return self._cell.read().unsafe_buffer_pointer()

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a ref to a scalar; read it with ref[...]")
        return self.shape[0]

    def __repr__(self) -> str:
        if self._cell.owner is not None or self._cell.value is FREED or type(self._cell.value) is Taken:
            return repr(AbstractRef(self._cell.aval))
        return "Ref" + repr(self._cell.value).removeprefix("Array")


def _check_shape(aval: ShapedArray, value: Any) -> None:
    shape = aval_of(value).shape
    if shape not in ((), aval.shape):
        raise ShapeError(
            f"ref of shape {aval.shape} cannot take a value of shape {shape} as a whole; a scalar or that shape fits"
        )


def _broadcast_to_ref(aval: ShapedArray, value: Any) -> Any:
    """The value as an array of the ref's shape."""
    if isinstance(value, np.ndarray | np.generic):
        value = _array(value)  # a copy, as the caller may write to its own
    typed = convert(value, aval.dtype, aval.weak_type)
    return typed if aval_of(typed).shape == aval.shape else _broadcast_to(typed, aval.shape)


def new_ref(init_val: Any, *, memory_space: Any = None, kind: str | None = None, pin: bool = False) -> Ref:
    """A ref that holds an array, or a number, for a start. It is not weakly typed, also if it starts with a number.

    `memory_space` and `kind` are None: a ref is in the memory of its array. Other values raise NotImplementedError.
    `pin` asks for a buffer that stays in its place, which every ref's does.

    >>> r = new_ref(xlamini.numpy.zeros(3))
    >>> r[1] = 5.0
    >>> r[...]
    Array([0., 5., 0.], dtype=float32)
    """
    if isinstance(init_val, Ref):
        raise TypeError("new_ref takes an array, got a ref; read it with ref[...]")
    _check_plain("new_ref", memory_space, kind)
    value = _strongly_typed(_array(init_val))
    return Ref(Cell(value, value.aval))


def _strongly_typed(value: Any) -> Any:
    return convert(value, value.aval.dtype, weak_type=False) if value.aval.weak_type else value


def empty_ref(ty: Any, memory_space: Any = None, pin: bool = False) -> Ref:
    """A ref for values of the type `ty` (anything with a shape and a dtype); it holds zeros until it is written.

    >>> empty_ref(xlamini.ShapeDtypeStruct((2,), "int32"))
    Ref([0, 0], dtype=int32)
    """
    _check_plain("empty_ref", memory_space, None)
    if not hasattr(ty, "shape") or not hasattr(ty, "dtype"):
        raise TypeError(f"empty_ref: ty needs a shape and a dtype, got {type(ty).__name__}; pass a ShapeDtypeStruct")
    return new_ref(_zeros(ty.shape, ty.dtype))


def _check_plain(what: str, memory_space: Any, kind: Any) -> None:
    if memory_space is not None or kind is not None:
        raise NotImplementedError(f"{what}: memory_space and kind must be None; a ref is in the memory of its array")


def _check_ref(name: str, ref: Any) -> None:
    if not isinstance(ref, Ref | TransformedRef):
        raise TypeError(f"{name}: a ref is needed, got {type(ref).__name__}; make one with new_ref")


def free_ref(ref: Ref) -> None:
    """Release the value of a ref; ValueError if the ref is used afterwards.

    >>> free_ref(new_ref(1.0))
    """
    _check_ref("free_ref", ref)
    ref.cell.write(FREED)


def freeze(ref: Ref) -> Any:
    """The value of a ref that will not be written any more.

    >>> freeze(new_ref(1.0))
    Array(1., dtype=float32)
    """
    _check_ref("freeze", ref)
    return ref[...]


def get(ref: Ref | TransformedRef, idx: Index | EllipsisType = ...) -> Any:
    """The value, or a part of it: `ref[idx]`.

    >>> get(new_ref(xlamini.numpy.arange(3)), 1)
    Array(1, dtype=int32)
    """
    _check_ref("get", ref)
    return ref[idx]


def set(ref: Ref | TransformedRef, idx: Index, value: Any) -> None:
    """Write a part: `ref[idx] = value`.

    >>> r = new_ref(xlamini.numpy.zeros(2))
    >>> set(r, 0, 1.0)
    >>> r
    Ref([1., 0.], dtype=float32)
    """
    _check_ref("set", ref)
    ref[idx] = value


def swap(ref: Ref | TransformedRef, idx: Index, value: Any, _function_name: str = "ref_swap") -> Any:
    """Write a part of a Ref and return its previous value; `_function_name` is accepted and ignored.

    >>> swap(new_ref(1.0), ..., 2.0)
    Array(1., dtype=float32)
    """
    _check_ref("swap", ref)
    before = ref[idx]
    ref[idx] = value
    return before


def addupdate(ref: Ref | TransformedRef, idx: Index, x: Any) -> None:
    """Add to a part: `ref[idx] += x`.

    >>> r = new_ref(xlamini.numpy.zeros(2))
    >>> addupdate(r, 0, 1.0)
    >>> r[...]
    Array([1., 0.], dtype=float32)
    """
    _check_ref("addupdate", ref)
    ref.addupdate(x, idx)


api_boundary_methods(Ref)
hooks.install(ref_of=Ref)
