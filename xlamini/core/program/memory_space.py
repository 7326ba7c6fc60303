"""Memory spaces in types: the memory of a device, and the host's memory that the device reads directly."""
from __future__ import annotations

import enum
import functools
import operator
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from xlamini.core.program.avals import Avals, Params


class Space(enum.Enum):
    """A memory to `device_put` into: the device's own (Device), the host's (Host), or the one a value is in (Any).

    A type shows it, as `float32<host>[4]`.

    >>> x = xlamini.device_put(xlamini.numpy.ones(2), xlamini.memory.Space.Host)
    >>> x.sharding.memory_kind, xlamini.typeof(x)
    ('pinned_host', ShapedArray(float32<host>[2]))
    """

    Device = "device"
    Host = "pinned_host"
    Any = "any"


Space.__hash__ = object.__hash__  # the one of Enum is a Python function, too slow for a part of every type


DEVICE, HOST = Space.Device, Space.Host
is_elsewhere: Final = functools.partial(operator.is_not, DEVICE)


def space_of_kind(kind: str | None) -> Space:
    """The memory space in the type of an array in a memory of this kind."""
    return HOST if kind == HOST.value else DEVICE


def space_in_program(what: str, kind: str | None) -> Space:
    """The memory space that a program moves a value to; ValueError for a kind of memory that programs do not use."""
    if kind not in (None, DEVICE.value, HOST.value):
        raise ValueError(
            f"{what}: a program moves values to memory of kind 'device' or 'pinned_host', not {kind!r}; write one of "
            "these"
        )
    return space_of_kind(kind)


def common_space(avals: Avals) -> Space:
    """The memory space where an operation computes: that of its arrays; numbers count only if there are no arrays."""
    arrays = [a for a in avals if a.shape] or avals
    return HOST if any(a.memory_space is HOST for a in arrays) else DEVICE


def in_memory(primitive: Any, out: Any, avals: Avals, params: Params) -> tuple[Any, str | None]:
    """The types of an equation's results, in the memory space that its operands imply, and what conflicts in these."""
    if primitive.higher_order or primitive.sharding.chooses_memory:
        return out, None
    space = common_space(avals)
    found = [a.in_space(space) for a in out] if primitive.multiple_results else out.in_space(space)
    return found, _conflict(primitive, [a for a in avals if a.shape])


def _conflict(primitive: Any, arrays: Avals) -> str | None:
    other = next((a for a in arrays if a.memory_space is not arrays[0].memory_space), None)
    if other is None:
        return None
    return (
        f"memory_space of all inputs passed to `{primitive}` must be the same. Got one operand with type: "
        f"{arrays[0].str_long()} and another operand with type: {other.str_long()}; move one with "
        "xlamini.device_put(x, xlamini.memory.Space.Device)"
    )
