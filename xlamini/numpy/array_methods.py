"""The methods of arrays and traced values that are functions of xlamini.numpy with the array as first argument."""
from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence
from importlib import import_module
from typing import Any

from xlamini.core import Tracer, check_user_dtype, itemsize_bits
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.core.errors.missing_names import answer_for_other_methods
from xlamini.numpy import complex_parts, construction, shapes
from xlamini.numpy.array_api import check_version
from xlamini.primitives import bitcast_convert_type
from xlamini.runtime import Array, ArrayImpl
from xlamini.transforms.sharding.device_put import device_put

METHODS = {
    "arithmetic": "clip",
    "complex_parts": "conjugate",
    "construction": "copy",
    "cumulative": "cumprod cumsum",
    "linear_algebra": "dot",
    "masks": "choose",
    "matrices": "diagonal trace",
    "reductions": "all any max min prod ptp sum",
    "repeating": "repeat",
    "rounding": "round",
    "searching": "nonzero searchsorted",
    "shapes": "ravel squeeze swapaxes",
    "sorting": "argmax argmin argpartition argsort sort",
    "statistics": "mean std var",
    "indexing.take": "take",
}
SYNONYMS = {"conj": "conjugate", "flatten": "ravel"}


class Method:
    """A method that is a function of one of the families, which are not read before somebody asks for the method."""

    family: str
    function: str
    name: str

    def __init__(self, family: str, function: str, name: str):
        self.family, self.function, self.name = family, function, name

    def __get__(self, instance: Any, owner: Any) -> Any:
        function = getattr(import_module(f"xlamini.numpy.{self.family}"), self.function)
        setattr(owner, self.name, api_boundary(function) if owner is ArrayImpl else function)
        return getattr(owner if instance is None else instance, self.name)


class Methods:
    """Methods and properties whose arguments differ from the function's of the same name."""

    def reshape(self: Any, *args: Any, order: str = "C", out_sharding: Any = None) -> Any:
        """The elements in another shape, given as one argument or as several: see `xlamini.numpy.reshape`."""
        return shapes.reshape(self, _one_or_several(args), order, out_sharding=out_sharding)

    def transpose(self: Any, *args: Any) -> Any:
        """The axes in another order, given as one argument or as several, or in the reverse one."""
        return shapes.transpose(self, _one_or_several(args) if args else None)

    def compress(self: Any, condition: Any, axis: int | None = None, **named: Any) -> Any:
        """The elements at which the condition holds, or their slices: see `xlamini.numpy.compress`."""
        from xlamini.numpy.masks import compress

        return compress(condition, self, axis, **named)

    def astype(self: Any, dtype: Any, copy: bool = False, device: Any = None) -> Any:
        """The values in another dtype: see `xlamini.numpy.astype`."""
        return construction.astype(self, dtype, copy=copy, device=device)

    def view(self: Any, dtype: Any = None, type: None = None) -> Any:
        """The bits read as another dtype."""
        if type is not None:
            raise NotImplementedError("view: `type` must be None, because arrays have no subclasses")
        return self if dtype is None else _viewed(self, check_user_dtype(dtype, "view"))

    def to_device(self: Any, device: Any, *, stream: Any = None) -> Any:
        """The array on another device."""
        if stream is not None:
            raise NotImplementedError("to_device: `stream` must be None")
        return device_put(self, device)

    def byteswap(self: Any, inplace: bool = False) -> Any:
        """The elements with their bytes in the other order."""
        if inplace:
            raise ValueError("byteswap: arrays are immutable; leave `inplace` out and use the array that is returned")
        from xlamini.numpy.packing import byteswap

        return byteswap(self)

    T = property(shapes.transpose, doc="The axes in reverse order.")
    mT = property(shapes.matrix_transpose, doc="The last two axes exchanged.")
    real = property(complex_parts.real, doc="The real part.")
    imag = property(complex_parts.imag, doc="The imaginary part.")


class Protocols:
    """The protocols by which other libraries and Python's own functions read an array."""

    aval: Any

    def __array_namespace__(self, /, *, api_version: str | None = None) -> Any:
        """The module of functions for it, as the array API standard asks."""
        check_version(api_version)
        return sys.modules["xlamini.numpy"]

    def __array_module__(self, types: Any) -> Any:
        """The module of functions for it, if all types are Arrays (NEP 37)."""
        return sys.modules["xlamini.numpy"] if all(issubclass(t, Array) for t in types) else NotImplemented

    @property
    def __numpy_dtype__(self) -> Any:
        return self.aval.dtype

    def __hex__(self: Any) -> str:
        return hex(self.__index__())

    def __oct__(self: Any) -> str:
        return oct(self.__index__())


def _viewed(x: Any, dtype: Any) -> Any:
    """The bits read as another dtype; one of another size makes the last axis longer or shorter."""
    aval = x.aval
    old, new = itemsize_bits(aval.dtype), itemsize_bits(dtype)
    if old != new and (not aval.ndim or aval.shape[-1] * old % new):
        raise ValueError(
            f"view: the last axis of {aval.str_short(short_dtypes=False)} does not hold whole elements of {dtype}"
        )
    if old < new:
        x = shapes.reshape(x, (*aval.shape[:-1], aval.shape[-1] * old // new, new // old))
    viewed = bitcast_convert_type(x, dtype)
    return shapes.reshape(viewed, (*aval.shape[:-1], aval.shape[-1] * old // new)) if old > new else viewed


def _one_or_several(args: Sequence[Any]) -> Any:
    return args[0] if len(args) == 1 else args


def _members(definition: type) -> dict[str, Any]:
    return {k: v for k, v in vars(definition).items() if not k.startswith("__")}


def give_methods(kind: type, names: Iterable[str]) -> None:
    """Let values of this class have some of the methods of arrays."""
    for name in names:
        function = SYNONYMS.get(name, name)
        setattr(kind, name, Method(_family_of[function], function, name))


_family_of = {function: family for family, functions in METHODS.items() for function in functions.split()}

for _kind in (Tracer, ArrayImpl, Array):
    give_methods(_kind, [*_family_of, *SYNONYMS])
for _name, _member in _members(Methods).items():
    setattr(Tracer, _name, _member)
    for _kind in (ArrayImpl, Array):  # what is an Array has them; libraries read their names of the class
        setattr(_kind, _name, _member if isinstance(_member, property) else api_boundary(_member))
for _name in ("__array_namespace__", "__array_module__", "__numpy_dtype__", "__hex__", "__oct__"):
    for _kind in (Tracer, ArrayImpl):
        setattr(_kind, _name, vars(Protocols)[_name])
for _kind in (Tracer, ArrayImpl):
    answer_for_other_methods(_kind)
