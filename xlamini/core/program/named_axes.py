"""Named axes: what collectives such as `psum` may refer to in this thread, and their sizes."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from xlamini.core.tracing.state import state


class Axis(NamedTuple):
    """The axis a `vmap` adds: its size, and its name where the user gave one; or an axis of shard_map's mesh.

    Of the latter, which are `manual`, it is tracked which values vary along it, unless it is not `checked`; devices are
    `divergent` along it in a branch or a loop that a varying value decides on. What a vmap
    adds may lie `along` axes of a mesh, where a program says how values lie; and `placed`, a mesh and some of its
    explicit axes, is what types of mapped arguments say of it. Within a shard_map that divides the examples among
    devices, batched values vary along the axes in `vma`, and `size` is the number of examples of one device.

    >>> from xlamini import extend
    >>> seen = []
    >>> copy_p = extend.Primitive("copied")
    >>> extend.shape_rule[copy_p] = extend.expand_rule[copy_p] = lambda x: x
    >>> @extend.batch_rule(copy_p)
    ... def _(axis, operands, dims):
    ...     seen.append((axis.size, axis.name))
    ...     return copy_p.bind(*operands), dims[0]
    >>> _ = xlamini.vmap(copy_p.bind, axis_name="batch")(jnp.ones((3, 2)))
    >>> seen
    [(3, 'batch')]
    """

    size: int
    name: Any = None
    manual: bool = False
    checked: bool = True
    divergent: bool = False
    along: tuple[Any, ...] = ()
    placed: tuple[Any, tuple[Any, ...]] | None = None
    vma: frozenset[Any] = frozenset()


@contextmanager
def named_axis(axis: Axis) -> Iterator[None]:
    """Let collectives inside refer to the axis by its name."""
    if axis.name is None:
        yield
        return
    before = state.axes
    state.axes = (*before, axis)
    try:
        yield
    finally:
        state.axes = before


@contextmanager
def divergent_along(names: Iterable[Any]) -> Iterator[None]:
    """Let only some devices along these axes of a mesh run what is traced inside."""
    before, axes = state.axes, map(manual_axis, names)
    state.axes = (*before, *[axis._replace(divergent=axis.checked) for axis in axes if axis is not None])
    try:
        yield
    finally:
        state.axes = before


def divergent_axes() -> frozenset[Any]:
    """The axes along which only some devices run what is traced here."""
    return frozenset(axis.name for axis in state.axes if axis.divergent)


def manual_axis(name: Any) -> Axis | None:
    """The axis of this name, if it is one of shard_map's mesh."""
    for axis in reversed(state.axes):
        if axis.name == name:
            return axis if axis.manual else None
    return None


def size_of_axis(name: Any) -> int:
    """The size of a named axis; NameError if there is none of this name here."""
    for axis in reversed(state.axes):
        if axis.name == name:
            return axis.size
    known = ", ".join(repr(a.name) for a in state.axes) or "none"
    raise NameError(
        f"unbound axis name: {name!r}; named axes here: {known}; give one with vmap(..., axis_name={name!r}), or "
        "shard_map over a mesh that has it"
    )
