"""Views of refs: a part of a ref, or a ref in another shape, order or dtype. A view is read and written like the ref.

A view holds the ref and the steps that lead to it (indexing/ref_steps.py).
"""
from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from xlamini.core import api_boundary_methods, aval_of, register_pytree_node
from xlamini.core.program.ref_types import AbstractRef
from xlamini.core.tracing.tracer import build
from xlamini.numpy.indexing.ref_steps import (
    Bitcast,
    Indexer,
    RefView,
    ReshapeView,
    Step,
    TransposeView,
    check_dtype,
    emptied,
    filled,
    fits_equation,
    is_traced_integer,
    shown,
    typed,
    values_at,
    written_at,
)
from xlamini.primitives.refs import addupdate_p, get_p, set_p

Index = Any


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

    @property
    def at(self) -> Any:
        """`at[index]` is a part, which is read and written like a ref."""
        return _Indexable(self)

    @property
    def T(self) -> Any:
        """A view with the dimensions in reverse order."""
        return self.transpose()

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
        self.through(Indexer(idx)).addupdate(x)


class TransformedRef(Viewed):
    """A view of a ref; made by `ref.at[index]`, `ref.T`, `ref.reshape`, `ref.bitcast`, and by these of a view.

    It is indexed like a ref, and has the methods of `x.at[index]` of an array. These write to the ref and return None,
    but for `get`, which reads. As an argument of a transformed function it replaces its ref.

    >>> r = xlamini.new_ref(xlamini.numpy.zeros(3))
    >>> r.at[1:].add(2.0)
    >>> r.at[1:].at[0].get(), r
    (Array(2., dtype=float32), Ref([0., 2., 2.], dtype=float32))
    """

    __slots__ = ("ref", "transforms")
    ref: Any
    transforms: tuple[Step, ...]

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

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return self.type.inner_aval.size

    def through(self, step: Step) -> TransformedRef:
        return TransformedRef(self.ref, (*self.transforms, step))

    def part(self, idx: Index) -> TransformedRef:
        is_whole = isinstance(idx, tuple) and not idx and isinstance(self.transforms[-1], Indexer)
        return self if is_whole else super().part(idx)

    def __getitem__(self, index: Index) -> Any:
        if index is not ...:
            return self.through(Indexer(index))[...]
        found = self._in_program()
        if found is not None:
            ref, view, operands = found
            return get_p.bind(ref, *operands, view=view)[0]
        return self._read(self.ref[...])

    def __setitem__(self, index: Index, value: Any) -> None:
        if index is not ...:
            self.through(Indexer(index))[...] = value
            return
        check_dtype(self.dtype, value)
        found = self._in_program()
        if found is not None:
            ref, view, operands = found
            set_p.bind(ref, typed(value, self.dtype), *operands, view=view)
        else:
            self._write(lambda x, step: step.write(x, value))

    def addupdate(self, x: Any, idx: Index = ...) -> None:
        """Add to the value, or to that of a part: `ref[idx] += x`."""
        part = self if idx is ... else self.through(Indexer(idx))
        found = part._in_program()
        if found is None or aval_of(x).shape not in ((), part.shape):
            part[...] = part[...] + x
            return
        check_dtype(self.dtype, x)
        ref, view, operands = found
        addupdate_p.bind(ref, typed(x, self.dtype), *operands, view=view)

    def _in_program(self) -> tuple[Any, RefView, list[Any]] | None:
        """The ref as a variable of the program being traced, the view of it, and the operands in its indices.

        None if the ref is no variable there, and for an index that only the value takes, such as a mask.
        """
        ref = self.ref.cell.variable()
        if ref is None or not all(fits_equation(s.index) for s in self.transforms if type(s) is Indexer):
            return None
        operands: list[Any] = []
        return ref, RefView(emptied(self.transforms, operands, is_traced_integer)), operands

    def updated(self, method: str, *values: Any, **options: Any) -> Any:
        """What `x.at[index].method` gives for the value `x` before the last step, which must be an index."""
        before = values_at(self.transforms[:-1], self.ref[...])[-1]
        return getattr(before.at[self.transforms[-1].index], method)(*values, **options)

    def update(self, method: str, *values: Any, **options: Any) -> None:
        """Write what `updated` gives."""
        if type(self.transforms[-1]) is not Indexer:
            self.at[...].update(method, *values, **options)
            return
        self._write(lambda x, step: getattr(x.at[step.index], method)(*values, **options))

    def _read(self, x: Any) -> Any:
        return values_at(self.transforms, x)[-1]

    def _write(self, last: Callable[[Any, Any], Any]) -> None:
        """Write to the ref; `last(x, step)` is the new value before the last step."""
        self.ref[...] = written_at(self.transforms, self.ref[...], last)

    def __repr__(self) -> str:
        return f"{self.ref!r}{''.join(map(shown, self.transforms))}"


def _method(name: str) -> Any:
    def update(self: TransformedRef, *values: Any, **options: Any) -> None:
        self.update(name, *values, **options)

    update.__name__, update.__doc__ = name, f"Write what `x.at[index].{name}` gives for the ref's value."
    return update


for _name in ("add", "subtract", "multiply", "mul", "divide", "power", "min", "max", "apply"):
    setattr(TransformedRef, _name, _method(_name))

api_boundary_methods(TransformedRef)


# --- as an argument: the ref and the numbers and arrays in its indices are the leaves

def _flatten(view: TransformedRef) -> tuple[tuple[Any, ...], Any]:
    numbers: list[Any] = []
    steps = emptied(view.transforms, numbers, _is_number)
    return (view.ref, *numbers), steps


def _is_number(item: Any) -> bool:
    return item is not None and item is not ... and not isinstance(item, bool)


def _unflatten(steps: tuple[Step, ...], children: Sequence[Any]) -> TransformedRef:
    ref, *numbers = children
    return TransformedRef(ref, filled(steps, numbers))


register_pytree_node(TransformedRef, _flatten, _unflatten)
