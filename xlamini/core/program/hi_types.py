"""Types of users (`experimental.hijax`): one variable of such a type stands for several arrays.

A `HiType` says which arrays, its lo types, and how values become these arrays and come back. In a program its aval is a
`HiAval`, a scalar of a dtype of its own; it becomes its lo types in `interpreters/expand.py`, before lowering.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any, ClassVar, NoReturn

from xlamini.core.program.avals import NOWHERE, Avals, ShapedArray, Values, has_shape_and_dtype, types_of_values
from xlamini.core.program.memory_space import DEVICE


class HiDType:
    """The dtype of values of one user's type."""

    kind = "V"
    physical_shape: tuple[()] = ()
    itemsize = 0

    def __init__(self, ty: Any):
        self.ty = ty

    @property
    def name(self) -> str:
        return str(self.ty)

    def __eq__(self, other: object) -> bool:
        return type(other) is HiDType and other.ty == self.ty

    def __hash__(self) -> int:
        return hash(self.ty)

    def __repr__(self) -> str:
        return self.name


class HiAval(ShapedArray):
    """The type of a variable whose values are of the user's type `ty`, and vary along the manual axes `vma`."""

    __slots__ = ("ty",)
    _of_types: ClassVar[dict[Any, HiAval]] = {}

    ty: Any

    def __new__(cls, ty: Any, vma: frozenset[Any] = NOWHERE) -> HiAval:
        key = (ty, vma) if vma else ty
        known = cls._of_types.get(key)
        return known if known is not None else cls._of_types.setdefault(key, cls._made(ty, vma))

    @classmethod
    def _made(cls, ty: Any, vma: frozenset[Any]) -> HiAval:
        self = object.__new__(cls)
        self.ty, self.dtype, self.shape, self.ndim, self.size, self.nbytes = ty, HiDType(ty), (), 0, 1, 0
        self.weak_type, self.vma, self.explicit_sharding, self.memory_space = False, vma, None, DEVICE
        return self

    def __reduce__(self) -> Any:
        return HiAval, (self.ty, self.vma)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.ty, name)

    def update(self, **changes: Any) -> HiAval:
        """The type with other varying axes: what values are made of, only the user's methods say."""
        return HiAval(self.ty, changes.get("vma", self.vma))

    def to_tangent_aval(self) -> ShapedArray:
        return self._alike(self.ty.to_tangent_aval())

    def inserted(self, dim: Any, size: int, placed: Any = None) -> ShapedArray:
        """The type of a batch: by the user's `inc_rank`, for a mapping spec, or 0 for the leading axis."""
        return self._alike(self.ty.inc_rank(size, self.spec(dim)))

    def without(self, dim: Any, size: int | None = None) -> ShapedArray:
        """The type of one example of a batch, by the user's `dec_rank`."""
        return self._alike(self.ty.dec_rank(size, self.spec(dim)))

    def _alike(self, ty: Any) -> ShapedArray:
        """A type that the user's one gave, whose values vary where these do."""
        aval = as_aval(ty)
        return aval.varying(aval.vma | self.vma)

    def spec(self, dim: Any) -> Any:
        """The mapping spec of a batch dimension: 0 is the leading axis."""
        if type(dim) is not int:
            return dim
        if dim != 0:
            raise TypeError(f"values of type {self.ty} have a leading axis and mapping specs, but no axis {dim}")
        return self.ty.leading_axis_spec()

    def str_short(self, short_dtypes: bool = True, mesh_axis_types: bool = False) -> str:
        return f"{self.ty}{{V:{','.join(sorted(map(str, self.vma)))}}}" if self.vma else str(self.ty)

    def __repr__(self) -> str:
        return f"HiAval({self})"

    def __str__(self) -> str:
        return self.str_short()


def as_aval(ty: Any) -> ShapedArray:
    """The type of a variable for a type as users write it, such as a ShapeDtypeStruct."""
    if is_hi_type(ty):
        return HiAval(ty)
    if isinstance(ty, ShapedArray) or not has_shape_and_dtype(ty):
        return ty
    weak_type, sharding = getattr(ty, "weak_type", False), getattr(ty, "sharding", None)
    return ShapedArray(tuple(ty.shape), ty.dtype, weak_type, sharding=sharding)


def as_written(aval: Any) -> Any:
    """A type as users write it and `typeof` shows it."""
    return aval.ty if type(aval) is HiAval else aval


def is_hi_type(ty: Any) -> bool:
    """Whether it is a user's type: an instance of `HiType`."""
    return getattr(type(ty), "is_hi_type", False)


def is_hi_value(x: Any) -> bool:
    """Whether it is a value of a class that is registered for a user's type."""
    return type(x) in types_of_values


class TypesOfClass:
    """The types of the values of one class: `typeof_fn(value)` gives them."""

    def __init__(self, typeof_fn: Callable[[Any], Any]):
        self.typeof_fn = typeof_fn

    def ty(self, x: Any) -> Any:
        """The type of a value, as users write it."""
        found = self.typeof_fn(x)
        if is_hi_type(found) or is_mutable_type(found):
            return found
        name = getattr(self.typeof_fn, "__name__", repr(self.typeof_fn))
        raise TypeError(f"register_hitype: {name} must return a HiType for a {type(x).__name__}, got {found!r}")

    def __call__(self, x: Any) -> HiAval:
        """The aval of a value; TypeError for one that changes, which is no variable of a program."""
        ty = self.ty(x)
        if is_mutable_type(ty):
            raise TypeError(f"a value of the mutable type {ty} is used where an array is expected; read what it holds")
        return HiAval(ty)


def is_mutable_type(ty: Any) -> bool:
    """Whether it is a user's type of values that change: an instance of `MutableHiType`."""
    return getattr(type(ty), "is_mutable_type", False)


def is_mutable_value(x: Any) -> bool:
    """Whether it is a value of a user's type that changes."""
    return type(x) in types_of_values and is_mutable_type(types_of_values[type(x)].ty(x))


def lo_avals(avals: Avals) -> list[ShapedArray]:
    """The types with those of users replaced by their lo types."""
    return [lo for aval in avals for lo in lo_types(aval)]


def lo_types(aval: ShapedArray) -> list[ShapedArray]:
    """The types of the arrays that a value is made of."""
    if type(aval) is not HiAval:
        return [aval]
    parts = lo_avals(list(map(as_aval, aval.ty.lo_ty())))
    return [lo.varying(lo.vma | aval.vma) for lo in parts] if aval.vma else parts


def fits(found: ShapedArray, due: ShapedArray) -> bool:
    """Whether a value of the one type may stand where the other is due: shape and dtype are equal.

    Of users' types the class and the arrays are: their shardings may differ, as those of arrays may.
    """
    if type(found) is not HiAval or type(due) is not HiAval or found.dtype == due.dtype:
        return (found.shape, found.dtype) == (due.shape, due.dtype)
    return type(found.ty) is type(due.ty) and _shapes(found) == _shapes(due)


def _shapes(aval: HiAval) -> list[Any]:
    return [(lo.shape, lo.dtype) for lo in lo_types(aval)]


def lowered(avals: Avals, values: Values) -> list[Any]:
    """The arrays that the values of these types are made of."""
    return [lo for aval, x in zip(avals, values, strict=True) for lo in _lowered(aval, x)]


def _lowered(aval: ShapedArray, x: Any) -> Sequence[Any]:
    if type(aval) is not HiAval:
        return [x]
    parts = list(aval.ty.lower_val(x))
    types = list(map(as_aval, aval.ty.lo_ty()))
    if len(parts) != len(types) and len(parts) != len(lo_avals(types)):
        _refuse(aval, f"lower_val returns {len(parts)} values, but lo_ty has {len(types)} types")
    return parts if len(parts) == len(lo_avals(types)) else lowered(types, parts)


def raised(avals: Avals, parts: Iterable[Any]) -> list[Any]:
    """The values of these types that are made of these arrays."""
    remaining = iter(parts)
    return [_raised(aval, remaining) for aval in avals]


def _raised(aval: ShapedArray, parts: Any) -> Any:
    if type(aval) is not HiAval:
        return next(parts)
    return aval.ty.raise_val(*islice(parts, len(lo_types(aval))))


def _refuse(aval: HiAval, problem: str) -> NoReturn:
    raise TypeError(f"the type {aval.ty}: {problem}; make the two agree")


def has_hi(avals: Avals) -> bool:
    """Whether one of the types is a user's."""
    return any(type(aval) is HiAval for aval in avals)
