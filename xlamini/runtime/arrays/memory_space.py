"""Memory spaces of arrays: the sharding that puts a value into a memory, or that an array of a type has."""
from __future__ import annotations

from typing import Any

from xlamini.core import ShapedArray
from xlamini.core.program.memory_space import Space, space_of_kind
from xlamini.runtime.arrays.array import Array
from xlamini.runtime.devices.platforms import default_device
from xlamini.runtime.sharding import make_single_device_sharding


def sharding_in(x: Any, space: Space) -> Any:
    """The sharding of a value in another memory of its devices."""
    own = x.sharding if isinstance(x, Array) else make_single_device_sharding(default_device())
    return own if space is Space.Any else own.with_memory_kind(space.value)


def in_space_of(sharding: Any, aval: ShapedArray) -> Any:
    """The sharding of a program's argument or result, in the memory of its type."""
    held = space_of_kind(sharding.memory_kind)
    return sharding if held is aval.memory_space else sharding.with_memory_kind(aval.memory_space.value)
