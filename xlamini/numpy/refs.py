"""Refs: arrays that can be written in place, under the names JAX users know as `jax.ref`.

    r = xlamini.new_ref(xlamini.numpy.zeros(3))
    r[0] = 1.0          # write
    r[1:] += 2.0        # add
    r[...]              # read

A ref made inside a traced function, or used in one from outside (in a jitted function, a loop's body, a branch), is
threaded through as a value, so the program stays pure and every transformation works as ever.
"""
from __future__ import annotations

from types import EllipsisType
from typing import Any

from xlamini.core import ShapedArray, ShapeError, api_boundary_methods, aval_of, register_pytree_node, result_type
from xlamini.core.ref_cells import Cell, Holder
from xlamini.numpy.construction import array as _array
from xlamini.numpy.repeating import broadcast_to as _broadcast_to
from xlamini.primitives import convert

Index = Any


class Ref(Holder):
    """A mutable array of fixed shape and dtype; made by `new_ref`.

    `ref[index]` reads, `ref[index] = value` writes, `ref[index] += value` adds; an index is what an array takes, `...`
    for all of it. A ref may be closed over or passed as an argument; it has no arithmetic of its own.
    """

    __slots__ = ()
    __hash__ = object.__hash__

    aval = property(lambda self: self._cell.aval)
    shape = property(lambda self: self._cell.aval.shape)
    dtype = property(lambda self: self._cell.aval.dtype)
    ndim = property(lambda self: len(self._cell.aval.shape))
    size = property(lambda self: self._cell.aval.size)

    def __getitem__(self, index: Index) -> Any:
        value = self._cell.read()
        return value if index is ... else value[index]

    def __setitem__(self, index: Index, value: Any) -> None:
        aval = self._cell.aval
        _check_dtype(aval, value)
        if index is ...:
            _check_shape(aval, value)
            new = _spread(aval, value)
        else:
            new = self._cell.read().at[index].set(value)
        self._cell.write(convert(new, aval.dtype, aval.weak_type))

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of a ref to a scalar; read it with ref[...]")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"Ref({self._cell.value!r})" if self._cell.owner is None else f"Ref{{{self.aval.str_short()}}}"


def _check_dtype(aval: ShapedArray, value: Any) -> None:
    found = aval_of(value)
    if result_type(aval, found) != aval.dtype:
        raise ValueError(
            f"ref of dtype {aval.dtype.name} cannot take a value of dtype {found.dtype.name}; convert it with "
            f".astype('{aval.dtype.name}')"
        )


def _check_shape(aval: ShapedArray, value: Any) -> None:
    shape = aval_of(value).shape
    if shape not in ((), aval.shape):
        raise ShapeError(
            f"ref of shape {aval.shape} cannot take a value of shape {shape} as a whole; a scalar or that shape fits"
        )


def _spread(aval: ShapedArray, value: Any) -> Any:
    """The value as an array of the ref's shape."""
    typed = convert(value, aval.dtype, aval.weak_type)
    return typed if aval_of(typed).shape == aval.shape else _broadcast_to(typed, aval.shape)


# A ref among arguments is part of their structure: what it holds is threaded, not passed.
register_pytree_node(Ref, lambda ref: ((), ref), lambda ref, children: ref)


def new_ref(init_val: Any) -> Ref:
    """A ref that holds an array, or a number, for a start.

    >>> r = new_ref(xlamini.numpy.zeros(3))
    >>> r[1] = 5.0
    >>> r[...]
    Array([0., 5., 0.], dtype=float32)
    """
    if isinstance(init_val, Ref):
        raise TypeError("new_ref takes an array, got a ref; read it with ref[...]")
    value = _array(init_val)
    return Ref(Cell(value, value.aval))


def freeze(ref: Ref) -> Any:
    """The value of a ref that will not be written any more.

    >>> freeze(new_ref(1.0))
    Array(1., dtype=float32, weak_type=True)
    """
    return get(ref)


def get(ref: Ref, idx: Index | EllipsisType = ...) -> Any:
    """The value, or a part of it: `ref[idx]`.

    >>> get(new_ref(xlamini.numpy.arange(3)), 1)
    Array(1, dtype=int32)
    """
    return ref[idx]


def set(ref: Ref, idx: Index, value: Any) -> None:
    """Write a part: `ref[idx] = value`.

    >>> r = new_ref(xlamini.numpy.zeros(2))
    >>> set(r, 0, 1.0)
    >>> r
    Ref(Array([1., 0.], dtype=float32))
    """
    ref[idx] = value


def swap(ref: Ref, idx: Index, value: Any) -> Any:
    """Write a part of a Ref and return its previous value.

    >>> swap(new_ref(1.0), ..., 2.0)
    Array(1., dtype=float32, weak_type=True)
    """
    before = ref[idx]
    ref[idx] = value
    return before


def addupdate(ref: Ref, idx: Index, x: Any) -> None:
    """Add to a part: `ref[idx] += x`.

    >>> r = new_ref(xlamini.numpy.zeros(2))
    >>> addupdate(r, 0, 1.0)
    >>> r[...]
    Array([1., 0.], dtype=float32)
    """
    ref[idx] = ref[idx] + x


api_boundary_methods(Ref)
