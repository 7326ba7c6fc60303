"""Views of refs: a part of a ref, or a ref in another shape, order or dtype. A view is read and written like the ref.

A view holds the ref and the steps that lead to it. A read takes the steps from the ref's value; a write takes them
back, and writes the whole new value to the ref.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from xlamini.core import ShapedArray, api_boundary_methods, aval_of, register_pytree_node, result_type
from xlamini.core.program.ref_cells import AbstractRef
from xlamini.core.tracing.tracer import build
from xlamini.numpy.indexing.parse import check_bounds
from xlamini.numpy.repeating import broadcast_to as _broadcast_to
from xlamini.numpy.shapes import reshape as _reshape, transpose as _transpose
from xlamini.primitives.elementwise.convert_element_type import bitcast_convert_type

Index = Any


def item_of(x: Any, index: Index) -> Any:
    """`x[index]` of the value of a ref, for which a static index out of bounds is an error whatever the flags say."""
    check_bounds(index, aval_of(x).shape)
    return x[index]


class Indexer(NamedTuple):
    """The step to `x[index]`."""

    index: Index

    def read(self, x: Any) -> Any:
        """The value after the step, from the one before."""
        return x if self.index is ... else item_of(x, self.index)

    def write(self, x: Any, new: Any) -> Any:
        """The value before the step, where the one after it is new."""
        check_bounds(self.index, aval_of(x).shape)
        return x.at[self.index].set(new)


class ReshapeView(NamedTuple):
    """The step to `x.reshape(shape)`."""

    shape: tuple[int, ...]

    def read(self, x: Any) -> Any:
        return _reshape(x, self.shape)

    def write(self, x: Any, new: Any) -> Any:
        return _reshape(_broadcast_to(new, self.read(x).shape), x.shape)


class TransposeView(NamedTuple):
    """The step to `x.transpose(permutation)`."""

    permutation: tuple[int, ...]

    def read(self, x: Any) -> Any:
        return _transpose(x, self.permutation)

    def write(self, x: Any, new: Any) -> Any:
        back = tuple(map(int, np.argsort(self.permutation)))
        return _transpose(_broadcast_to(new, self.read(x).shape), back)


class Bitcast(NamedTuple):
    """The step to the same bits as another dtype; of another width, they are packed along the dimension before last."""

    dtype: np.dtype

    def read(self, x: Any) -> Any:
        return _bits_as(x, self.dtype)

    def write(self, x: Any, new: Any) -> Any:
        return _bits_as(_broadcast_to(new, self.read(x).shape), x.dtype)


def check_dtype(dtype: np.dtype, value: Any) -> None:
    """ValueError for a value that a ref of this dtype cannot hold."""
    found = aval_of(value)
    if result_type(ShapedArray((), dtype), found) != dtype:
        raise ValueError(
            f"ref of dtype {dtype.name} cannot take a value of dtype {found.dtype.name}; convert it with "
            f".astype('{dtype.name}')"
        )


Step = Indexer | ReshapeView | TransposeView | Bitcast


def _bits_as(x: Any, dtype: np.dtype) -> Any:
    before, after = x.dtype.itemsize, dtype.itemsize
    if before == after:
        return bitcast_convert_type(x, dtype)
    if x.ndim < 2 or x.shape[-2] * before % after:
        raise ValueError(
            f"bitcast: the last dimension but one of {x.aval.str_short()} cannot be packed as {dtype.name}; its bytes "
            "must be a multiple of the dtype's"
        )
    *front, rows, columns = x.shape
    if before > after:
        parts = bitcast_convert_type(x, dtype)
        return _reshape(parts.swapaxes(-1, -2), (*front, rows * before // after, columns))
    packed = _reshape(x, (*front, rows * before // after, after // before, columns))
    return bitcast_convert_type(packed.swapaxes(-1, -2), dtype)


class _Indexable:
    """What `.at` of a ref or of a view is; index it."""

    __slots__ = ("_view",)

    def __init__(self, view: Any):
        self._view = view

    def __getitem__(self, index: Index) -> TransformedRef:
        return self._view.through(Indexer(index))


class Viewed:
    """What a ref and its views have in common: further views, and reading and writing by methods."""

    __slots__ = ()

    def through(self, step: Step) -> TransformedRef:
        """The view that one step leads to from here."""
        raise NotImplementedError

    def part(self, idx: Index) -> TransformedRef:
        """The view of a part."""
        return self.through(Indexer(idx))

    def __iter__(self) -> Iterator[Any]:
        # Python would count until an error, which a traced function raises for no index.
        return iter([self[i] for i in range(self.shape[0])])  # type: ignore[attr-defined, index]

    at = property(_Indexable, doc="`at[index]` is a part, which is read and written like a ref.")
    T: Any = property(lambda self: self.transpose(), doc="A view with the dimensions in reverse order.")

    def reshape(self, *shape: Any) -> TransformedRef:
        """A view in another shape."""
        sizes = shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
        return self._checked(ReshapeView(tuple(sizes)))

    def transpose(self, *permutation: Any) -> TransformedRef:
        """A view with the dimensions in another order, by default reversed."""
        order = permutation[0] if len(permutation) == 1 and isinstance(permutation[0], Sequence) else permutation
        count = len(self.shape)  # type: ignore[attr-defined]
        return self._checked(TransposeView(tuple(order) or tuple(reversed(range(count)))))

    def bitcast(self, dtype: Any) -> TransformedRef:
        """A view of the same bits as another dtype.

        Of another width, the elements are packed along the last dimension but one: float32[4,2] is int16[8,2].
        """
        return self._checked(Bitcast(np.dtype(dtype)))

    def _checked(self, step: Step) -> TransformedRef:
        view = self.through(step)
        _ = view.shape  # an error for a step that does not fit is raised here
        return view

    def get(self, idx: Index = (), **options: Any) -> Any:
        """The value, or that of a part; the options are those of `x.at[idx].get`."""
        return self.part(idx).updated("get", **options)

    def set(self, value: Any, idx: Index = (), **options: Any) -> None:
        """Write the value, or that of a part; the options are those of `x.at[idx].set`."""
        check_dtype(self.dtype, value)  # type: ignore[attr-defined]
        self.part(idx).update("set", value, **options)

    def swap(self, value: Any, idx: Index = ()) -> Any:
        """Write the value, or that of a part, and return the one before."""
        part = self.part(idx)
        before = part[...]
        part[...] = value
        return before

    def addupdate(self, x: Any, idx: Index = ...) -> None:
        """Add to the value, or to that of a part: `ref[idx] += x`."""
        part = self.part(idx)
        part[...] = part[...] + x


class TransformedRef(Viewed):
    """A view of a ref; made by `ref.at[index]`, `ref.T`, `ref.reshape`, `ref.bitcast`, and by these of a view.

    It is indexed like a ref, and has the methods of `x.at[index]` of an array. These write to the ref and return None,
    but for `get`, which reads. As an argument of a transformed function it stands for its ref.

    >>> r = xlamini.new_ref(xlamini.numpy.zeros(3))
    >>> r.at[1:].add(2.0)
    >>> r.at[1:].at[0].get(), r
    (Array(2., dtype=float32), Ref([0., 2., 2.], dtype=float32))
    """

    __slots__ = ("ref", "transforms")

    def __init__(self, ref: Any, transforms: tuple[Step, ...]):
        self.ref, self.transforms = ref, transforms

    @property
    def type(self) -> AbstractRef:
        """The type of the view, as that of a ref."""
        jaxpr, _ = build(lambda x: [self._read(x)], [self.ref.cell.aval])
        return AbstractRef(jaxpr.out_avals[0])

    @property
    def dtype(self) -> np.dtype:
        """The dtype of the view."""
        return next((s.dtype for s in reversed(self.transforms) if isinstance(s, Bitcast)), self.ref.dtype)

    shape = property(lambda self: self.type.shape)
    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: self.type.inner_aval.size)

    def through(self, step: Step) -> TransformedRef:
        return TransformedRef(self.ref, (*self.transforms, step))

    def part(self, idx: Index) -> TransformedRef:
        is_whole = isinstance(idx, tuple) and not idx and isinstance(self.transforms[-1], Indexer)
        return self if is_whole else super().part(idx)

    def __getitem__(self, index: Index) -> Any:
        part = self._read(self.ref[...])
        return part if index is ... else item_of(part, index)

    def __setitem__(self, index: Index, value: Any) -> None:
        if index is not ...:
            self.through(Indexer(index))[...] = value
            return
        check_dtype(self.dtype, value)
        self._write(lambda x, step: step.write(x, value))

    def updated(self, method: str, *values: Any, **options: Any) -> Any:
        """What `x.at[index].method` gives for the value `x` before the last step, which must be an index."""
        return getattr(self._before(self.ref[...])[-1].at[self.transforms[-1].index], method)(*values, **options)

    def update(self, method: str, *values: Any, **options: Any) -> None:
        """Write what `updated` gives."""
        if type(self.transforms[-1]) is not Indexer:
            self.at[...].update(method, *values, **options)
            return
        self._write(lambda x, step: getattr(x.at[step.index], method)(*values, **options))

    def _before(self, x: Any) -> list[Any]:
        """The values before each of the steps, from that of the ref."""
        values = [x]
        for step in self.transforms[:-1]:
            values.append(step.read(values[-1]))
        return values

    def _read(self, x: Any) -> Any:
        return self.transforms[-1].read(self._before(x)[-1])

    def _write(self, last: Callable[[Any, Any], Any]) -> None:
        """Write to the ref; `last(x, step)` is the new value before the last step."""
        values = self._before(self.ref[...])
        new = last(values.pop(), self.transforms[-1])
        for x, step in zip(reversed(values), reversed(self.transforms[:-1]), strict=True):
            new = step.write(x, new)
        self.ref[...] = new

    def __repr__(self) -> str:
        return f"{self.ref!r}{''.join(map(_shown, self.transforms))}"


def _shown(step: Step) -> str:
    if isinstance(step, Indexer):
        return f".at[{step.index!r}]"
    return f".{type(step).__name__.removesuffix('View').lower()}({step[0]})"


def _method(name: str) -> Any:
    def update(self: TransformedRef, *values: Any, **options: Any) -> None:
        self.update(name, *values, **options)

    update.__name__, update.__doc__ = name, f"Write what `x.at[index].{name}` gives for the ref's value."
    return update


for _name in ("add", "subtract", "multiply", "mul", "divide", "power", "min", "max", "apply"):
    setattr(TransformedRef, _name, _method(_name))

api_boundary_methods(TransformedRef)


# --- as an argument: the ref and the numbers and arrays in its indices are the leaves

_HOLE = object()


def _flatten(view: TransformedRef) -> tuple[tuple[Any, ...], Any]:
    dynamic: list[Any] = []
    steps = tuple(
        ("index", _emptied(step.index, dynamic)) if isinstance(step, Indexer) else step for step in view.transforms
    )
    return (view.ref, *dynamic), steps


def _emptied(index: Index, dynamic: list[Any]) -> Any:
    """An index that can be compared and hashed, whose numbers and arrays are added to the list."""
    if isinstance(index, tuple):
        return tuple(_emptied(i, dynamic) for i in index)
    if isinstance(index, slice):
        return slice, index.start, index.stop, index.step
    if index is None or index is ... or isinstance(index, bool):
        return index
    dynamic.append(index)
    return _HOLE


def _unflatten(steps: Any, children: Sequence[Any]) -> TransformedRef:
    ref, *dynamic = children
    found = iter(dynamic)
    return TransformedRef(
        ref,
        tuple(Indexer(_filled(s[1], found)) if type(s) is tuple else s for s in steps),
    )


def _filled(index: Any, dynamic: Any) -> Index:
    if index is _HOLE:
        return next(dynamic)
    if isinstance(index, tuple) and index[:1] == (slice,):
        return slice(*index[1:])
    return tuple(_filled(i, dynamic) for i in index) if isinstance(index, tuple) else index


register_pytree_node(TransformedRef, _flatten, _unflatten)
