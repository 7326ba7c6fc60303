"""The placement of new arrays: the arguments `device` and `out_sharding`."""
from __future__ import annotations

from typing import Any

from xlamini.core.tracing.state import state
from xlamini.primitives import checked_sharding
from xlamini.primitives.placement.identity import stage
from xlamini.runtime import NamedSharding
from xlamini.transforms.sharding.device_put import device_put


def as_place(name: str, device: Any, out_sharding: Any) -> Any:
    """The place that was asked for by one argument or the other; None for neither, ValueError for both."""
    if out_sharding is None:
        return device
    if device is not None:
        raise ValueError(f"{name}: device and out_sharding are both given; leave one out")
    return checked_sharding(name, out_sharding)


def placed(x: Any, place: Any) -> Any:
    """An array in a place, if one was asked for; in a traced function it is split there by the program."""
    if place is None:
        return x
    if state.builder is not None and type(place) is NamedSharding:
        x = stage(x)
    return device_put(x, place)
