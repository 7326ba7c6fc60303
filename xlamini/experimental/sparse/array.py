"""The base of sparse arrays: a shape, flags about the indices, and buffers that are the children of a pytree node."""
from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from xlamini import numpy as jnp
from xlamini.core import api_boundary_methods
from xlamini.core.pytree import GetAttrKey
from xlamini.experimental.sparse.entries import fits_batch
from xlamini.runtime import Array


class JAXSparse(ABC):
    """Base class of sparse arrays: `isinstance(x, JAXSparse)` tells them from dense ones.

    A subclass names its buffers, `data` first. The number of batch dimensions follows from the rank of `indices`, so
    that a transformation that adds or removes a leading dimension of all buffers, such as vmap or scan, gives a sparse
    array with one batch dimension more or fewer.

    >>> from xlamini.experimental import sparse
    >>> x = sparse.eye(3)
    >>> isinstance(x, JAXSparse), isinstance(x.todense(), JAXSparse)
    (True, False)
    >>> x.shape, x.dtype, x.nse, x @ jnp.arange(3.0)
    ((3, 3), dtype('float32'), 3, Array([0., 1., 2.], dtype=float32))
    """

    buffers: ClassVar[tuple[str, ...]]
    index_rank: ClassVar[int]
    """The rank of `indices` without batch dimensions."""
    shapes: ClassVar[str]
    """The shapes of the buffers, for messages."""
    n_sparse: Any
    """The number of sparse dimensions."""
    __array_ufunc__ = None
    __hash__: Any = None

    data: Array
    indices: Array
    shape: tuple[int, ...]
    indices_sorted: bool
    unique_indices: bool
    _rank: int | None = None

    def __init__(
        self, args: Sequence[Any], *, shape: Sequence[int], indices_sorted: bool = False, unique_indices: bool = False
    ):
        if len(args) != len(self.buffers):
            raise ValueError(f"{self._name}: args must be ({', '.join(self.buffers)}), got {len(args)} arrays")
        self._set([jnp.asarray(x) for x in args], tuple(map(int, shape)), indices_sorted, unique_indices)
        self._check()

    def _set(self, buffers: Sequence[Any], shape: tuple[int, ...], indices_sorted: bool, unique_indices: bool) -> None:
        for name, x in zip(self.buffers, buffers, strict=True):
            setattr(self, name, x)
        self.shape, self.indices_sorted, self.unique_indices = shape, bool(indices_sorted), bool(unique_indices)

    @abstractmethod
    def _own_shapes(self, sizes: tuple[int, ...]) -> Sequence[tuple[int, ...]]:
        """The shapes of the buffers without batch dimensions, for these sizes of the other dimensions."""

    def _check(self) -> None:
        """Raise ValueError if the dtypes or shapes of the buffers do not fit the array's shape."""
        buffers, n = self._values, self.n_batch
        for name, x in zip(self.buffers[1:], buffers[1:], strict=True):
            if not jnp.issubdtype(x.dtype, jnp.integer):
                raise ValueError(f"{self._name}: {name} must be integers, got {x.dtype}")
        own = self._own_shapes(self.shape[n:]) if 0 <= n <= self.ndim - self.n_sparse else None
        if own is None or not all(
            fits_batch(x.shape, (*self.shape[:n], *shape), n) for x, shape in zip(buffers, own, strict=True)
        ):
            raise ValueError(
                f"{self._name}: {', '.join(self.buffers)} of shapes {', '.join(str(x.shape) for x in buffers)} do not "
                f"fit an array of shape {self.shape}; they must be {self.shapes}"
            )

    def todense(self) -> Array:
        """The dense array."""
        return self.to_bcoo().todense()

    @abstractmethod
    def to_bcoo(self) -> Any:
        """The array in the format of coordinates."""

    @property
    def _name(self) -> str:
        return type(self).__name__

    @property
    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.buffers)

    @property
    def dtype(self) -> Any:
        return self.data.dtype

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def flags(self) -> dict[str, bool]:
        """The promises about the indices, as keyword arguments."""
        return {"indices_sorted": self.indices_sorted, "unique_indices": self.unique_indices}

    @property
    def n_batch(self) -> int:
        """The number of batch dimensions."""
        return self.indices.ndim - self.index_rank

    @property
    def n_dense(self) -> int:
        """The number of dense dimensions."""
        return self.data.ndim - 1 - self.n_batch

    @property
    def nse(self) -> int:
        """The number of specified elements, in a batch."""
        return self.indices.shape[self.n_batch]

    def with_data(self, data: Any) -> Self:
        """The array with other data at the same indices."""
        return self.with_buffers((data, *self._values[1:]), self.shape)

    def with_buffers(self, buffers: Sequence[Any], shape: tuple[int, ...]) -> Self:
        """An array of this format with other buffers, which are not checked."""
        new = object.__new__(type(self))
        new._set(buffers, shape, **self.flags)
        return new

    def block_until_ready(self) -> Self:
        """Wait until the buffers are computed."""
        for x in self._values:
            x.block_until_ready()
        return self

    def check_mapped(self, what: str, axes: Sequence[int | None]) -> None:
        """Raise ValueError unless a transformation maps all buffers along one batch dimension, or adds one there."""
        allowed = self.n_batch + ("out_axes" in what)
        if (len({*axes}) > 1 and None not in axes) or any(axis is not None and axis >= allowed for axis in axes):
            raise ValueError(f"{what} of {self!r} must be below {allowed}, to be a batch dimension, got {axes[0]}")

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(f"len: a {self._name} of rank 0 has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        if not all(hasattr(x, "shape") for x in (self.data, self.indices)):  # a tree of other leaves
            return f"{self._name}({', '.join(map('{}={!r}'.format, self.buffers, self._values))})"
        counts = {"nse": self.nse, "n_batch": self.n_batch, "n_dense": self.n_dense}
        shown = [f"{name}={n}" for name, n in counts.items() if n or name == "nse"]
        return f"{self._name}({self.dtype.name}{list(self.shape)}, {', '.join(shown)})"

    def tree_flatten(self) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        rank = getattr(self.indices, "ndim", self._rank)
        metadata = self.shape, rank, self.indices_sorted, self.unique_indices
        return self._values, metadata

    def tree_flatten_with_keys(self) -> tuple[list[tuple[GetAttrKey, Any]], tuple[Any, ...]]:
        buffers, metadata = self.tree_flatten()
        return list(zip(map(GetAttrKey, self.buffers), buffers, strict=True)), metadata

    @classmethod
    def tree_unflatten(cls, metadata: tuple[Any, ...], buffers: Sequence[Any]) -> Self:
        shape, rank, indices_sorted, unique_indices = metadata
        self = object.__new__(cls)
        self._set(buffers, shape, indices_sorted, unique_indices)
        self._rank = rank  # for placeholders, which have none
        found = getattr(self.indices, "ndim", rank)
        if found != rank:
            self.shape = _with_batch(cls, self, rank)
        return self


api_boundary_methods(JAXSparse)


def _with_batch(cls: type[JAXSparse], x: JAXSparse, rank: int) -> tuple[int, ...]:
    """The shape of an array whose buffers have gained or lost batch dimensions since they had this rank of indices."""
    if x.n_batch < 0 or x.n_dense < 0:
        raise ValueError(
            f"{cls.__name__} of shape {x.shape}: only batch dimensions can be mapped, and it has "
            f"{rank - cls.index_rank}; call update_layout(n_batch=1), or pass axes that are batch dimensions"
        )
    batch = jnp.broadcast_shapes(x.data.shape[: x.n_batch], x.indices.shape[: x.n_batch])
    return (*batch, *x.shape[rank - cls.index_rank :])
