"""Extended dtypes: dtypes of users, whose elements are small arrays of another dtype.

Programs move such elements about as those of any dtype: indexing, reshaping, loops and vmap. What else can be done with
them is for primitives of the library that defines the dtype, written by `packed` and `unpacked`.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from xlamini.core import Avals, ExtendedDType, ShapedArray, Values, aval_of, is_zero
from xlamini.core.dtypes.table import extended
from xlamini.extend.rules import as_value
from xlamini.primitives import convert
from xlamini.primitives.random.random_keys import KeyPrimitive
from xlamini.random import key_arrays  # which gives arrays of extended dtypes indexing and the like
from xlamini.runtime.arrays.to_device import device_put_value


class Elements(KeyPrimitive):
    """The base of the two primitives between elements and what they are made of, which are one and the same array."""

    def physical(self, operands: Values, avals: Avals, **params: Any) -> Any:
        return convert(operands[0], aval_of(operands[0]).dtype)


class Pack(Elements):
    """Elements of an extended dtype, from what they are made of."""

    name = "pack"

    def jvp(self, primals: Values, tangents: Values, *, dtype: ExtendedDType) -> Any:
        if not is_zero(tangents[0]):
            raise TypeError(
                f"elements of {dtype} have no tangents, so a derivative would be lost in `packed`; give the primitive "
                "that computes with them a jvp rule in terms of its operands, or apply stop_gradient first"
            )
        return super().jvp(primals, tangents, dtype=dtype)

    def shape_rule(self, parts: ShapedArray, *, dtype: ExtendedDType) -> ShapedArray:
        return ShapedArray(parts.shape[: parts.ndim - len(dtype.physical_shape)], dtype)


class Unpack(Elements):
    """What the elements of an extended dtype are made of."""

    name = "unpack"

    def shape_rule(self, elements: ShapedArray) -> ShapedArray:
        dtype = elements.dtype
        return ShapedArray((*elements.shape, *dtype.physical_shape), dtype.physical_dtype)


pack_p: Final = Pack()
unpack_p: Final = Unpack()


class Summed(ExtendedDType):
    """A dtype of single numbers whose tangents are added by a function of the user's."""

    has_tangents = True
    physical_shape: tuple[()] = ()
    plus: Callable[[Any, Any], Any]
    neutral: Any

    def converts(self, dtype: Any) -> bool:
        return dtype == self.physical_dtype

    def add(self, x: Any, y: Any) -> Any:
        return packed(self.plus(unpacked(x), unpacked(y)), self)

    def zero(self) -> Any:
        return packed(np.asarray(self.neutral, self.physical_dtype), self)


def define_dtype(
    name: str,
    physical_shape: tuple[int, ...],
    physical_dtype: Any,
    *,
    add: Callable[[Any, Any], Any] | None = None,
    zero: Any = 0,
) -> ExtendedDType:
    """A dtype whose elements are arrays of `physical_shape` and `physical_dtype`; `name` is how it prints.

    With `add`, elements have tangents of their own dtype. Where a derivative would sum them it applies `add` to arrays
    of what they are made of; `zero` is the number that `add` ignores. Such elements are single numbers, so
    `physical_shape` must be (), else ValueError, and `convert_element_type` makes them of numbers, and back.

    >>> from xlamini import extend
    >>> interval = extend.define_dtype("interval", (2,), "float32")
    >>> x = extend.packed([[0.0, 1.0], [2.0, 3.0]], interval)
    >>> x.dtype, x.shape, extend.unpacked(xlamini.jit(lambda x: x[1])(x))
    (interval, (2,), Array([2., 3.], dtype=float32))
    """
    if add is not None and tuple(physical_shape):
        raise ValueError(f"define_dtype: elements with tangents are numbers, so physical_shape=() is needed with add, "
                         f"got {tuple(physical_shape)}")
    fields = {
        "name": name, "type": type(name, (extended,), {}), "physical_shape": tuple(physical_shape),
        "physical_dtype": np.dtype(physical_dtype),
    }  # fmt: skip
    if add is None:
        return type(name, (ExtendedDType,), fields)()
    return type(name, (Summed,), fields | {"plus": staticmethod(add), "neutral": zero})()


def packed(parts: Any, dtype: ExtendedDType) -> Any:
    """Elements of an extended dtype; the last dimensions of `parts` are those of one element.

    TypeError unless `parts` has these dimensions, and the dtype that elements are made of.

    >>> interval = define_dtype("interval", (2,), "float32")
    >>> x = packed([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], interval)
    >>> x.shape, x.dtype, x[::-1].shape
    ((3,), interval, (3,))
    """
    parts = parts if hasattr(parts, "dtype") else device_put_value(np.asarray(parts, dtype.physical_dtype))
    aval = aval_of(parts)
    shape = dtype.physical_shape
    if aval.shape[aval.ndim - len(shape) :] != shape or aval.dtype != dtype.physical_dtype:
        wanted = ShapedArray(shape, dtype.physical_dtype).str_long()
        raise TypeError(f"packed: an element of {dtype} is {wanted}, but the parts are {aval.str_long()}")
    return convert(parts, dtype) if dtype.has_tangents else pack_p.bind(as_value(parts), dtype=dtype)


def unpacked(elements: Any) -> Any:
    """What elements of an extended dtype are made of, in its last dimensions; TypeError for any other dtype.

    >>> interval = define_dtype("interval", (2,), "float32")
    >>> x = packed([[0.0, 1.0], [2.0, 3.0]], interval)
    >>> unpacked(x[1])
    Array([2., 3.], dtype=float32)
    """
    aval = aval_of(elements)
    if not isinstance(aval.dtype, ExtendedDType):
        raise TypeError(f"unpacked takes an array of an extended dtype, got {aval.str_long()}")
    return convert(elements, aval.dtype.physical_dtype) if aval.dtype.has_tangents else unpack_p.bind(elements)
