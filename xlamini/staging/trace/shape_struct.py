"""ShapeDtypeStruct: an abstract array, for tracing without data."""
from __future__ import annotations

from typing import Any

from xlamini.core import ShapedArray, ShapeError, aval_of, check_user_dtype
from xlamini.core.sizes.expression import as_size
from xlamini.runtime import Sharding, named
from xlamini.runtime.meshes.named_sharding import typed_by


def _checked(shape: Any) -> tuple[int, ...]:
    try:
        sizes = tuple(map(as_size, shape))
    except TypeError:
        raise TypeError(f"ShapeDtypeStruct: shape must be a sequence of ints, got {shape!r}") from None
    if not all(size >= 0 for size in sizes):
        raise ShapeError(f"ShapeDtypeStruct: shape {sizes} has a negative size; sizes are 0 or more")
    return sizes


def _checked_sharding(sharding: Any) -> Sharding | None:
    found = named(sharding, "ShapeDtypeStruct: sharding is", TypeError)
    if not isinstance(found, Sharding | None):
        raise TypeError(
            f"ShapeDtypeStruct: sharding must be a sharding, got {sharding!r} of type {type(sharding).__name__}; write "
            "NamedSharding(mesh, P(...)), or P(...) where a mesh is set"
        )
    return found


class ShapeDtypeStruct:
    """The shape, dtype and optional sharding of an array, for tracing without data: `eval_shape`, `jit(f).lower`.

    `sharding` may be a PartitionSpec, which refers to the mesh of `set_mesh`.

    >>> xlamini.ShapeDtypeStruct((3,), "float32")
    ShapeDtypeStruct(shape=(3,), dtype=float32)
    """

    __slots__ = ("dtype", "shape", "sharding", "weak_type")
    sharding: Sharding | None
    weak_type: bool

    def __init__(self, shape: Any, dtype: Any, *, sharding: Any = None, weak_type: bool = False):
        if dtype is None:
            raise ValueError("ShapeDtypeStruct: dtype must be given, for example 'float32'")
        self.shape: tuple[int, ...] = _checked(shape)
        self.dtype: Any = check_user_dtype(dtype, "ShapeDtypeStruct")
        self.sharding, self.weak_type = _checked_sharding(sharding), weak_type

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return self.aval.size

    @property
    def aval(self) -> ShapedArray:
        plain = ShapedArray(self.shape, self.dtype, self.weak_type)
        return plain if self.sharding is None else typed_by(self.sharding, plain)

    @classmethod
    def like(cls, x: Any) -> ShapeDtypeStruct:
        """The type of an array, or of anything that converts to one.

        >>> xlamini.ShapeDtypeStruct.like(xlamini.numpy.ones(3))
        ShapeDtypeStruct(shape=(3,), dtype=float32)
        """
        aval = aval_of(x)
        committed = getattr(x, "committed", False)
        return cls(aval.shape, aval.dtype, sharding=x.sharding if committed else None, weak_type=aval.weak_type)

    def update(self, **changes: Any) -> ShapeDtypeStruct:
        """A copy with some fields changed."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        return ShapeDtypeStruct(**{**fields, **changes})

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of an array without axes")
        return self.shape[0]

    def __repr__(self) -> str:
        weak = ", weak_type=True" if self.weak_type else ""
        place = f", sharding={self.sharding}" if self.sharding is not None else ""
        return f"ShapeDtypeStruct(shape={self.shape}, dtype={self.dtype.name}{place}{weak})"

    def _key(self) -> tuple:
        return self.shape, self.dtype, self.sharding, self.weak_type

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())
