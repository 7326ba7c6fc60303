"""Avals: abstract values, the types of arrays.

Avals are interned: two equal types are one object. So comparing and hashing them costs as little as for ints.
"""
from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any, ClassVar, Final

import numpy as np

from xlamini.core import hooks
from xlamini.core.dtypes import canonicalize_dtype, dtype_of, float0, issubdtype, short_name
from xlamini.core.errors import ShapeError
from xlamini.core.program.memory_space import DEVICE, Space
from xlamini.core.sharding.abstract_mesh import ManualAxisType
from xlamini.core.sharding.aval_sharding import AvalSharding, Names, with_entry
from xlamini.core.sharding.partition_spec import PartitionSpec
from xlamini.core.sizes.expression import SymbolicSize, as_size, check_symbolic_shape, is_symbolic_shape
from xlamini.core.tracing.host_arrays import refuse_masked

Shape = tuple[int, ...]

MAX_EXTENT = 2**60
"""A limit on sizes and bytes, far more than any machine has; XLA aborts the process where a size leaves 63 bits."""


NOWHERE: frozenset[Any] = frozenset()
SCALAR_TYPES: set[type] = {bool, int, float, complex}


class ShapedArray:
    """An array's type: shape, dtype, weak type, varying manual axes, sharding, memory space.

    `vma` are the manual axes of shard_map along which the value varies; along all others, devices hold equal values.
    `explicit_sharding` is the sharding along explicit mesh axes; None if the value is not split.

    >>> aval = xlamini.typeof(jnp.ones((2, 3)))
    >>> aval, aval.shape, aval.nbytes
    (ShapedArray(float32[2,3]), (2, 3), 24)
    >>> aval is ShapedArray((2, 3), "float32"), xlamini.typeof(1.0).weak_type
    (True, True)
    """

    __slots__ = ("dtype", "explicit_sharding", "memory_space", "nbytes", "ndim", "shape", "size", "vma", "weak_type")
    _interned: ClassVar[dict[tuple, ShapedArray]] = {}

    shape: Shape
    dtype: Any
    weak_type: bool
    vma: frozenset[Any]
    explicit_sharding: AvalSharding | None
    memory_space: Space
    ndim: int
    size: int
    nbytes: int

    def __new__(
        cls,
        shape: Shape,
        dtype: Any,
        weak_type: bool = False,
        vma: frozenset[Any] = NOWHERE,
        explicit_sharding: AvalSharding | None = None,
        memory_space: Space = DEVICE,
        *,
        sharding: Any = None,
    ) -> ShapedArray:
        if type(shape) is list:
            shape = tuple(shape)
        if sharding is not None:
            explicit_sharding = hooks.split_in_type(sharding, len(shape))
        key = (shape, dtype, weak_type, vma, explicit_sharding, memory_space)
        aval = cls._interned.get(key)
        return aval if aval is not None else cls._intern(key)

    @classmethod
    def _intern(cls, key: tuple) -> ShapedArray:
        shape, dtype, weak_type, vma, split, memory_space = key
        self = object.__new__(cls)
        self.shape = sizes_of(shape)
        self.dtype = dtype if hasattr(dtype, "physical_shape") else np.dtype(dtype)
        self.ndim, self.size = len(self.shape), math.prod(self.shape)
        self.nbytes = self.size * self.dtype.itemsize
        self.weak_type, self.vma, self.explicit_sharding, self.memory_space = bool(weak_type), vma, split, memory_space
        self._check_size()
        canonical = (self.shape, self.dtype, self.weak_type, vma, split, memory_space)
        return cls._interned.setdefault(key, cls._interned.setdefault(canonical, self))

    def _check_size(self) -> None:
        if type(self.size) is SymbolicSize or (not self.size and is_symbolic_shape(self.shape)):
            check_symbolic_shape(self.shape)
        elif min(self.shape, default=0) < 0:
            raise ShapeError(f"shape {self.shape} has a negative size; sizes are 0 or more")
        elif max(self.shape, default=0) > MAX_EXTENT or self.nbytes > MAX_EXTENT:
            raise ShapeError(f"an array {self.str_short(False)} is larger than any memory; make its shape smaller")

    @property
    def sharding(self) -> Any:
        """The sharding as a NamedSharding over an AbstractMesh, which has no axes if the value is not split."""
        return hooks.sharding_of(self)

    def to_tangent_aval(self) -> ShapedArray:
        """The type of tangents: the same for floats and complex numbers, float0 for other dtypes."""
        inexact = issubdtype(self.dtype, np.inexact)
        return self if inexact else self.update(dtype=float0, weak_type=False)

    at_least_vspace = to_tangent_aval  # its older name
    to_ct_aval = to_tangent_aval

    # How a type of users that holds this one asks it what its values are made of.

    def lo_ty(self) -> list[ShapedArray]:
        """The types of the arrays that a value is made of: itself."""
        return [self]

    def lower_val(self, val: Any) -> list[Any]:
        """The arrays that a value is made of: itself."""
        return [val]

    def raise_val(self, val: Any) -> Any:
        """The value that is made of this array: itself."""
        return val

    def vspace_zero(self) -> Any:
        """An array of zeros."""
        return hooks.zeros(self)

    def vspace_add(self, x: Any, y: Any) -> Any:
        """The sum of two arrays."""
        return x + y

    def dec_rank(self, size: int | None, dim: int | None) -> ShapedArray:
        """The type of one example of a batch along dimension `dim`."""
        return self if dim is None else self.without(dim)

    def inc_rank(self, size: int, dim: int | None) -> ShapedArray:
        """The type of a batch of `size` along dimension `dim`."""
        return self if dim is None else self.inserted(dim, size)

    def leading_axis_spec(self) -> int:
        return 0

    def shard(self, mesh: Any, manual_axes: frozenset[Any], check_vma: bool, spec: Any) -> ShapedArray:
        """The type of one device's shard in a shard_map."""
        return hooks.local_array(self, mesh, manual_axes, spec)

    def unshard(self, mesh: Any, check_vma: bool, spec: Any) -> ShapedArray:
        """The type of the global array of which this is the type of a shard."""
        return hooks.global_array(self, mesh, spec)

    def nospec(self, mesh: Any, check_vma: bool, all_names: Names) -> PartitionSpec:
        """The spec of an array of which all devices along the axes may have their own: they form a stack."""
        names = tuple(n for n in mesh.axis_names if n in self.vma) if check_vma else all_names
        return PartitionSpec(names) if names else PartitionSpec()

    def normalize(self) -> ShapedArray:
        """The type without weak type."""
        return self.strip_weak_type()

    @property
    def manual_axis_type(self) -> ManualAxisType:
        """The manual axes along which the value varies, in JAX's form."""
        if self.explicit_sharding is None:
            return ManualAxisType(self.vma)
        manual = frozenset(self.explicit_sharding.mesh.manual_axes)
        return ManualAxisType(
            self.vma, self.explicit_sharding.unreduced & manual, self.explicit_sharding.reduced & manual
        )

    def varying(self, axes: frozenset[Any]) -> ShapedArray:
        """The type with other varying manual axes."""
        return self if axes == self.vma else self.update(vma=axes)

    def with_sharding(self, split: AvalSharding | None) -> ShapedArray:
        """The type with another sharding along explicit mesh axes."""
        return self if split is self.explicit_sharding else self.update(explicit_sharding=split)

    def in_space(self, space: Space) -> ShapedArray:
        """The type with another memory space."""
        return self if space is self.memory_space else self.update(memory_space=space)

    def __reduce__(self) -> tuple[Any, ...]:
        return ShapedArray, (
            self.shape,
            self.dtype,
            self.weak_type,
            self.vma,
            self.explicit_sharding,
            self.memory_space,
        )

    def update(self, **changes: Any) -> ShapedArray:
        """The aval with some fields changed; a change of shape drops the sharding, unless `explicit_sharding` is
        given.
        """
        of = changes.get
        return ShapedArray(
            of("shape", self.shape),
            of("dtype", self.dtype),
            of("weak_type", self.weak_type),
            of("vma", self.vma),
            of("explicit_sharding", None if "shape" in changes else self.explicit_sharding),
            of("memory_space", self.memory_space),
        )

    def strip_weak_type(self) -> ShapedArray:
        return self.update(weak_type=False) if self.weak_type else self

    def without(self, dim: int) -> ShapedArray:
        """The type without dimension `dim`."""
        shape = (*self.shape[:dim], *self.shape[dim + 1 :])
        return self.update(
            shape=shape, explicit_sharding=self.explicit_sharding and self.explicit_sharding.without(dim)
        )

    def inserted(self, dim: int, size: int, placed: tuple[Any, Names] | None = None) -> ShapedArray:
        """The type with a new dimension at `dim`; `placed` is a mesh and the axes that split the dimension."""
        shape = (*self.shape[:dim], size, *self.shape[dim:])
        split = self.explicit_sharding and self.explicit_sharding.inserted(dim)
        if placed is not None:
            split = with_entry(split, dim, len(shape), *placed)
        return self.update(shape=shape, explicit_sharding=split)

    def str_short(self, short_dtypes: bool = True, mesh_axis_types: bool = False) -> str:
        """`f32[3,4]`, or `float32[3,4]` with the dtype's full name; `f32<host>[3,4]` in the host's memory.

        `mesh_axis_types` is accepted and ignored: axes are shown by their names.
        """
        name = short_name(self.dtype) if short_dtypes or self.dtype == float0 else self.dtype.name
        marks = [f"V:{','.join(sorted(map(str, self.vma)))}"] if self.vma else []
        sizes = list(map(str, self.shape))
        if self.explicit_sharding is not None:
            sizes = [f"{size}{mark}" for size, mark in zip(sizes, self.explicit_sharding.marks(), strict=True)]
            marks += self.explicit_sharding.sum_marks()
        space = "" if self.memory_space is DEVICE else f"<{self.memory_space.name.lower()}>"
        shown = f"{name}{space}[{','.join(sizes)}]"
        return f"{shown}{{{', '.join(marks)}}}" if marks else shown

    def str_long(self) -> str:
        """`float32[3,4]`: the type as error messages write it."""
        return self.str_short(short_dtypes=False)

    def __str__(self) -> str:
        return f"{'~' if self.weak_type else ''}{self.str_short(short_dtypes=False)}"

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_short(short_dtypes=False)}{weak})"


types_of_values: dict[type, Any] = {}
"""For each class whose values have a type of users, its `TypesOfClass` (hi_types.py)."""


class Typed:
    """The properties of a value that are those of its type."""

    __slots__ = ()
    aval: ShapedArray

    @property
    def shape(self) -> tuple[int, ...]:
        """The array's shape: the length of each axis."""
        return self.aval.shape

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the elements."""
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return self.aval.ndim

    @property
    def size(self) -> int:
        """The number of elements."""
        return self.aval.size

    @property
    def itemsize(self) -> int:
        """The size of one element in bytes."""
        return self.aval.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """The size of all elements in bytes."""
        return self.aval.nbytes


def aval_of(x: Any) -> ShapedArray:
    """The type of an array, tracer, literal or scalar."""
    aval = getattr(x, "aval", None)
    if aval is not None:
        return aval
    kind = type(x)
    if kind in types_of_values:
        return types_of_values[kind](x)
    if kind is not np.ndarray and isinstance(x, np.ndarray):
        refuse_masked(x)
    dtype = canonicalize_dtype(dtype_of(x), allow_extended_dtype=True)
    return ShapedArray(np.shape(x), dtype, kind is not bool and (kind in SCALAR_TYPES or kind is SymbolicSize))


space_of: Final = operator.attrgetter("memory_space")
split_of: Final = operator.attrgetter("explicit_sharding")
vma_of: Final = operator.attrgetter("vma")


def has_shape_and_dtype(x: Any) -> bool:
    """Whether a value describes an array: an array of any library, or a type such as ShapeDtypeStruct."""
    return hasattr(x, "shape") and hasattr(x, "dtype")


def as_sizes(given: int | Sequence[int]) -> Shape:
    """Sizes or dimensions as a tuple of sizes, of length one for a size. TypeError for anything but integers."""
    return sizes_of(given if type(given) is tuple or is_several(given) else (given,))


def sizes_of(given: Any) -> Shape:
    """Sizes as a tuple of ints, and of symbolic sizes as they are."""
    try:
        return tuple(map(operator.index, given))
    except TypeError:
        return tuple(map(as_size, given))


def is_several(given: Any) -> bool:
    """Whether an argument, a number or a sequence of numbers, is a sequence; an array of rank 0 is a number."""
    return type(given) is tuple or bool(hasattr(given, "__iter__") and getattr(given, "ndim", 1))


def as_dimension(given: int, ndim: int) -> int:
    """A dimension counted from the first, for the caller to check; TypeError for what is no integer."""
    dimension = operator.index(given)
    return dimension + ndim if -ndim <= dimension < 0 else dimension


# The types in the signatures of rules.
Avals = Sequence[ShapedArray]
Values = Sequence[Any]
"""Operands, results, tangents or cotangents."""
Dims = Sequence[int | None]
"""The batch dimension of each value, None for one that has none."""
Params = dict[str, Any]
