"""Copies between memories that a kernel starts and waits for, and semaphores, on one device.

A copy means that the part of the one ref is the part of the other from its start on; what its semaphore counts, only a
TPU knows. Other semaphores are refs of an int32, which `semaphore_signal` adds to and `semaphore_wait` takes from.
"""
from __future__ import annotations

import enum
import operator
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from xlamini.core import Avals, Cost, Params, ShapedArray, Values, aval_of, is_zero
from xlamini.core.errors import ShapeError
from xlamini.core.errors.kernel_errors import KernelError
from xlamini.core.program.ref_types import AbstractRef, RefPrimitive
from xlamini.primitives.base.promotion import convert
from xlamini.primitives.refs import RefAddupdate, WholeView, get_p, set_p
from xlamini.transforms.pallas.scratch import run_scoped
from xlamini.transforms.pallas.specs import MemoryRef


class SemaphoreType(enum.Enum):
    """A kind of semaphore, for `scratch_shapes`; called with a shape, it is an array of them.

    >>> SemaphoreType.DMA((2,))
    MemoryRef(shape=(2,), dtype=dtype('int32'), memory_space='dma_semaphore')
    """

    REGULAR = "semaphore"
    DMA = "dma_semaphore"

    def __call__(self, shape: Sequence[int]) -> MemoryRef:
        return MemoryRef(tuple(map(operator.index, shape)), np.dtype(np.int32), self.value)

    def ref_type(self, *args: Any) -> AbstractRef:
        """The type of the ref of one semaphore."""
        return self(()).ref_type(*args)


class CopyViews(NamedTuple):
    """The parts that a copy is between, and its semaphore: their views, and how many operands each has."""

    target: Any
    source: Any
    semaphore: Any
    counts: tuple[int, int, int]

    def operands(self, rest: Sequence[Any]) -> list[Sequence[Any]]:
        """The operands in the indices of each."""
        first, second, _ = np.cumsum(self.counts)
        return [rest[:first], rest[first:second], rest[second:]]


class OnCopy(RefPrimitive):
    """An equation on the target, the source and the semaphore of a copy, all refs, then the operands in indices."""

    writes = True  # so that it stays where it is

    def shape_rule(self, *avals: Any, views: CopyViews) -> Avals:
        return []

    def cost(self, target: Any, source: Any, *rest: Any, views: CopyViews) -> Cost:
        return Cost(0, source.nbytes + target.nbytes)

    def jvp(self, primals: Values, tangents: Values, *, views: CopyViews) -> Any:
        """The same copy of the tangent, with the same semaphore; zeros are written where the source has none."""
        self.bind(*primals, views=views)
        target, source = tangents[:2]
        if not is_zero(target):
            self._copy_tangent(target, source, primals, views)
        return [], []

    def _copy_tangent(self, target: Any, source: Any, primals: Values, views: CopyViews) -> None:
        semaphore, *rest = primals[2:]
        if not is_zero(source):
            self.bind(target, source, semaphore, *rest, views=views)
        elif self is start_copy_p:
            at_target = views.operands(rest)[0]
            set_p.bind(target, np.zeros((), target.aval.dtype), *at_target, view=views.target)

    def notation(self, outs: str, names: list[str], params: Params) -> str:
        views = params["views"]
        parts = zip((views.target, views.source, views.semaphore), names, views.operands(names[3:]), strict=False)
        target, source, semaphore = (f"{name}{view.notation(*rest)}" for view, name, rest in parts)
        return f"{self.name} {target} <- {source} by {semaphore}"

    def lower(self, ctx: Any, *operands: Any, views: CopyViews) -> list[Any]:
        emit = getattr(ctx, self.name, None)
        if emit is None:
            raise KernelError(f"{self.name}: only a TPU's kernel has copies; read the ref and write the other")
        parts = zip(operands[:3], views[:3], views.operands(ctx.avals_in[3:]), ctx.avals_in[:3], strict=True)
        found = [view.part(aval.shape, avals) for _, view, avals, aval in parts]
        if None in found:
            raise KernelError(f"{self.name}: a copy is between parts by ints and slices; write ref.at[i, pl.ds(0, 8)]")
        emit(*zip(operands[:3], found, views.operands(operands[3:]), strict=True))
        return []


class CopyStart(OnCopy):
    name = "start_copy"

    def discharge(self, refs: Sequence[Any], operands: Values, *, views: CopyViews) -> tuple[list[Any], dict[Any, Any]]:
        target, source, _, *rest = operands
        at_target, at_source, _ = views.operands(rest)
        new = views.target.write(target, views.source.read(source, *at_source), *at_target)
        return [], {refs[0]: convert(new, target.dtype, target.weak_type)}


class CopyWait(OnCopy):
    name = "wait_copy"

    def discharge(self, refs: Sequence[Any], operands: Values, *, views: CopyViews) -> tuple[list[Any], dict[Any, Any]]:
        return [], {}


class SemaphoreSignal(RefAddupdate):
    name = "semaphore_signal"
    emits = "signal_semaphore"

    def jvp(self, primals: Values, tangents: Values, *, view: Any) -> Any:
        self.bind(*primals, view=view)
        return [], []

    def lower(self, ctx: Any, ref: Any, amount: Any, *indices: Any, view: Any) -> list[Any]:
        emit = getattr(ctx, self.emits, None)
        if emit is None:
            raise KernelError(f"{self.name}: only a TPU's kernel has semaphores")
        emit(ref, view.part(ctx.avals_in[0].shape, ctx.avals_in[2:]), indices, amount)
        return []


class SemaphoreWait(SemaphoreSignal):
    name = "semaphore_wait"
    emits = "wait_semaphore"

    def by_values(self, x: Any, operands: Values, view: Any) -> tuple[list[Any], Any]:
        amount, *indices = operands
        return [], view.write(x, view.read(x, *indices) - amount, *indices)


start_copy_p: Final = CopyStart()
wait_copy_p: Final = CopyWait()
signal_p: Final = SemaphoreSignal()
wait_p: Final = SemaphoreWait()


Found = tuple[Any, Any, list[Any]]


def _in_program(what: str, ref: Any) -> Found:
    """The variable that a ref is in the kernel being traced, the view of it, and the operands in its indices."""
    if hasattr(ref, "transforms"):
        found = ref._in_program()
    else:
        variable = ref.cell.variable() if hasattr(ref, "cell") else None
        found = variable if variable is None else (variable, WholeView(), [])
    if found is None:
        raise TypeError(f"{what} takes refs of the kernel, or parts of them such as ref.at[0], got {ref!r}")
    return found


def _part_type(found: Found) -> ShapedArray:
    """The type of the value of a part."""
    ref, view, rest = found
    aval: Any = aval_of(ref)
    return get_p.shape_rule(aval, *map(aval_of, rest), view=view)[0]


def _check_copy(target: Found, source: Found, semaphore: Found) -> None:
    """ShapeError or TypeError for parts of other types, or for a semaphore that is none."""
    to, what = map(_part_type, (target, source))
    if to.shape != what.shape or to.dtype != what.dtype:
        error = ShapeError if to.shape != what.shape else TypeError
        types = [a.str_short(short_dtypes=False) for a in (what, to)]
        raise error(
            f"make_async_copy: the source is {types[0]} but the target is {types[1]}; copy between parts of the same "
            "shape and dtype"
        )
    _check_semaphore("make_async_copy", semaphore)


def _one_semaphore(what: str, sem: Any) -> Found:
    """A semaphore in the program, or the error that it is none."""
    found = _in_program(what, sem)
    _check_semaphore(what, found)
    return found


def _check_semaphore(what: str, found: Found) -> None:
    aval = _part_type(found)
    if aval.shape:
        raise ShapeError(f"{what}: it takes one semaphore, got an array of shape {aval.shape}; pass sem.at[0]")


class AsyncCopy(NamedTuple):
    """A copy that can be started and waited for; made by `make_async_copy`.

    >>> def copy(x, o, sem):
    ...     AsyncCopy(x, o, sem).start()
    ...     AsyncCopy(x, o, sem).wait()
    >>> anywhere = pl.BlockSpec(memory_space=pl.ANY)
    >>> call = pl.pallas_call(
    ...     copy, xlamini.ShapeDtypeStruct((2,), "float32"), in_specs=[anywhere], out_specs=anywhere,
    ...     scratch_shapes=[SemaphoreType.DMA],
    ... )
    >>> call(jnp.ones(2))
    Array([1., 1.], dtype=float32)
    """

    source: Any
    target: Any
    semaphore: Any

    def start(self, priority: int = 0) -> None:
        """Start the copy. Nobody may write the source or read the target before `wait`."""
        self._bind(start_copy_p)

    def wait(self) -> None:
        """Wait until the copy has ended."""
        self._bind(wait_copy_p)

    def _bind(self, primitive: OnCopy) -> None:
        found = [_in_program("make_async_copy", x) for x in (self.target, self.source, self.semaphore)]
        _check_copy(*found)
        target, source, semaphore = (view for _, view, _ in found)
        first, second, third = (len(rest) for _, _, rest in found)
        views = CopyViews(target, source, semaphore, (first, second, third))
        primitive.bind(*(ref for ref, _, _ in found), *(x for _, _, rest in found for x in rest), views=views)


def make_async_copy(src_ref: Any, dst_ref: Any, sem: Any) -> AsyncCopy:
    """A copy from one ref to another, or between parts of them, in a kernel; `sem` is a `SemaphoreType.DMA`.

    Raises TypeError at the start for what is no ref of the kernel, or is of another dtype; ShapeError for parts of
    other shapes, and for an array of semaphores.

    >>> def copy(x, o, sem):
    ...     done = make_async_copy(x, o, sem)
    ...     done.start()
    ...     done.wait()
    >>> anywhere = pl.BlockSpec(memory_space=pl.ANY)
    >>> call = pl.pallas_call(
    ...     copy, xlamini.ShapeDtypeStruct((2,), "float32"), in_specs=[anywhere], out_specs=anywhere,
    ...     scratch_shapes=[SemaphoreType.DMA],
    ... )
    >>> call(jnp.ones(2))
    Array([1., 1.], dtype=float32)
    """
    return AsyncCopy(src_ref, dst_ref, sem)


def async_copy(src_ref: Any, dst_ref: Any, sem: Any) -> AsyncCopy:
    """`make_async_copy`, started.

    >>> def copy(x, o, sem):
    ...     async_copy(x, o, sem).wait()
    >>> anywhere = pl.BlockSpec(memory_space=pl.ANY)
    >>> call = pl.pallas_call(
    ...     copy, xlamini.ShapeDtypeStruct((2,), "float32"), in_specs=[anywhere], out_specs=anywhere,
    ...     scratch_shapes=[SemaphoreType.DMA],
    ... )
    >>> call(jnp.ones(2))
    Array([1., 1.], dtype=float32)
    """
    copy = make_async_copy(src_ref, dst_ref, sem)
    copy.start()
    return copy


def sync_copy(src_ref: Any, dst_ref: Any) -> None:
    """Copy from one ref of a kernel to another, or between parts of them, and wait for the end.

    >>> anywhere, out = pl.BlockSpec(memory_space=pl.ANY), xlamini.ShapeDtypeStruct((2,), "float32")
    >>> pl.pallas_call(sync_copy, out, in_specs=[anywhere], out_specs=anywhere)(jnp.ones(2))
    Array([1., 1.], dtype=float32)
    """
    run_scoped(lambda sem: async_copy(src_ref, dst_ref, sem).wait(), SemaphoreType.DMA(()))


def semaphore_signal(sem: Any, inc: Any = 1) -> None:
    """Add to a semaphore of the kernel.

    >>> def kernel(o, sem):
    ...     semaphore_signal(sem, 3)
    ...     semaphore_wait(sem, 2)
    ...     o[0] = semaphore_read(sem)
    >>> out = xlamini.ShapeDtypeStruct((1,), "int32")
    >>> pl.pallas_call(kernel, out, scratch_shapes=[SemaphoreType.REGULAR])()
    Array([1], dtype=int32)
    """
    ref, view, rest = _one_semaphore("semaphore_signal", sem)
    signal_p.bind(ref, convert(inc, np.dtype(np.int32)), *rest, view=view)


def semaphore_wait(sem: Any, value: Any = 1) -> None:
    """Wait until a semaphore of the kernel is at least `value`, and take that from it.

    >>> def kernel(o, sem):
    ...     semaphore_signal(sem, 3)
    ...     semaphore_wait(sem, 2)
    ...     o[0] = semaphore_read(sem)
    >>> out = xlamini.ShapeDtypeStruct((1,), "int32")
    >>> pl.pallas_call(kernel, out, scratch_shapes=[SemaphoreType.REGULAR])()
    Array([1], dtype=int32)
    """
    ref, view, rest = _one_semaphore("semaphore_wait", sem)
    wait_p.bind(ref, convert(value, np.dtype(np.int32)), *rest, view=view)


def semaphore_read(sem: Any) -> Any:
    """The count of a semaphore of the kernel, an int32.

    >>> def kernel(o, sem):
    ...     semaphore_signal(sem, 3)
    ...     semaphore_wait(sem, 2)
    ...     o[0] = semaphore_read(sem)
    >>> out = xlamini.ShapeDtypeStruct((1,), "int32")
    >>> pl.pallas_call(kernel, out, scratch_shapes=[SemaphoreType.REGULAR])()
    Array([1], dtype=int32)
    """
    return sem[...]
