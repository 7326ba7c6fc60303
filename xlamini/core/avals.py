"""Avals: what is known of a value before it exists.

An aval is interned: asking twice for the same type gives the same object. So avals are equal if and only if they are
the same object, and tables of them cost no more than tables of ints.
"""
from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from xlamini.core.dtypes import float0, short_name
from xlamini.core.errors import ShapeError
from xlamini.core.sharding.abstract_mesh import ManualAxisType
from xlamini.core.sharding.aval_sharding import Names, Split, with_entry

Shape = tuple[int, ...]

_MAX_BYTES = 2**60
"""Far more than any machine has; XLA aborts the process where a size leaves 63 bits."""


NOWHERE: frozenset[Any] = frozenset()
sharding_of: list[Callable[[ShapedArray], Any]] = []
"""Gives the NamedSharding of a type; a floor above puts it here."""


class ShapedArray:
    """An array's type: shape, dtype, weak type, and what it says of meshes.

    Within shard_map that is the manual axes along which the value varies (`vma`): devices along others have the same.
    On a mesh with explicit axes it is how the value is split along them (`split`), None if it is not.
    """

    __slots__ = ("dtype", "nbytes", "shape", "size", "split", "vma", "weak_type")
    _interned: ClassVar[dict[tuple, ShapedArray]] = {}

    shape: Shape
    dtype: Any
    weak_type: bool
    vma: frozenset[Any]
    split: Split | None
    size: int
    nbytes: int

    def __new__(
        cls,
        shape: Shape,
        dtype: Any,
        weak_type: bool = False,
        vma: frozenset[Any] = NOWHERE,
        split: Split | None = None,
    ) -> ShapedArray:
        key = (shape, dtype, weak_type, vma, split)
        aval = cls._interned.get(key)
        return aval if aval is not None else cls._intern(key)

    @classmethod
    def _intern(cls, key: tuple) -> ShapedArray:
        shape, dtype, weak_type, vma, split = key
        self = object.__new__(cls)
        self.shape = tuple(map(operator.index, shape))
        self.dtype = dtype if hasattr(dtype, "physical_shape") else np.dtype(dtype)
        self.size = math.prod(self.shape)
        self.nbytes = self.size * self.dtype.itemsize
        self.weak_type, self.vma, self.split = bool(weak_type), vma, split
        self._check_size()
        canonical = (self.shape, self.dtype, self.weak_type, vma, split)
        return cls._interned.setdefault(key, cls._interned.setdefault(canonical, self))

    def _check_size(self) -> None:
        if min(self.shape, default=0) < 0:
            raise ShapeError(f"shape {self.shape} has a negative size; sizes are 0 or more")
        if max(self.shape, default=0) > _MAX_BYTES or self.nbytes > _MAX_BYTES:
            raise ShapeError(f"an array {self.str_short(False)} is larger than any memory; make its shape smaller")

    @property
    def sharding(self) -> Any:
        """How the value is split, as a NamedSharding over an AbstractMesh, which has no axes if nothing is split."""
        return sharding_of[0](self)

    @property
    def manual_axis_type(self) -> ManualAxisType:
        """Along which manual axes the value varies."""
        return ManualAxisType(self.vma)

    def varying(self, axes: frozenset[Any]) -> ShapedArray:
        """The same type for a value that varies along just these axes."""
        return self if axes == self.vma else self.update(vma=axes)

    def divided(self, split: Split | None) -> ShapedArray:
        """The same type for a value that is split so."""
        return self if split is self.split else self.update(split=split)

    def __reduce__(self):
        return ShapedArray, (self.shape, self.dtype, self.weak_type, self.vma, self.split)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    def update(self, **changes: Any) -> ShapedArray:
        """The same aval with some fields changed; with another shape it is not split, unless `split` is given."""
        of = changes.get
        return ShapedArray(
            of("shape", self.shape),
            of("dtype", self.dtype),
            of("weak_type", self.weak_type),
            of("vma", self.vma),
            of("split", None if "shape" in changes else self.split),
        )

    def strip_weak_type(self) -> ShapedArray:
        return ShapedArray(self.shape, self.dtype, False, self.vma, self.split) if self.weak_type else self

    def without(self, dim: int) -> ShapedArray:
        """The type with a dimension taken off."""
        shape = (*self.shape[:dim], *self.shape[dim + 1 :])
        return self.update(shape=shape, split=self.split and self.split.without(dim))

    def inserted(self, dim: int, size: int, placed: tuple[Any, Names] | None = None) -> ShapedArray:
        """The type with a further dimension of this size at `dim`, split along the axes of a mesh in `placed`."""
        shape = (*self.shape[:dim], size, *self.shape[dim:])
        split = self.split and self.split.inserted(dim)
        if placed is not None:
            split = with_entry(split, dim, len(shape), *placed)
        return self.update(shape=shape, split=split)

    def str_short(self, short_dtypes: bool = True) -> str:
        """`f32[3,4]`, or `float32[3,4]` with the dtype's full name."""
        name = short_name(self.dtype) if short_dtypes or self.dtype == float0 else self.dtype.name
        varies = f"{{V:{','.join(sorted(map(str, self.vma)))}}}" if self.vma else ""
        sizes = list(map(str, self.shape))
        if self.split is not None:
            sizes = [f"{size}{mark}" for size, mark in zip(sizes, self.split.marks(), strict=True)]
        return f"{name}[{','.join(sizes)}]{varies}"

    def str_long(self) -> str:
        """`float32[3,4]`: the type as error messages write it."""
        return self.str_short(short_dtypes=False)

    def __str__(self) -> str:
        return f"{'~' if self.weak_type else ''}{self.str_short(short_dtypes=False)}"

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_short(short_dtypes=False)}{weak})"
