"""`jax.experimental.colocated_python`: Python on the hosts of remote devices, of which there are none."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xlamini.as_jax.missing_names import fall_through
from xlamini.as_jax.overlay.refusals import refusing

__getattr__ = fall_through(__name__)

_INSTEAD = "there are no remote hosts; each process runs its own Python"


def colocated_python(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function that refuses to run; libraries decorate theirs when they are imported."""
    return refusing("colocated_python", _INSTEAD)


def colocated_python_class(cls: type) -> Callable[..., Any]:
    """A class of which no object can be made."""
    return refusing("colocated_python_class", _INSTEAD)


def colocated_cpu_devices(devices: Sequence[Any]) -> Any:
    """The CPU devices of the hosts of devices, which cannot be told apart here."""
    return refusing("colocated_cpu_devices", _INSTEAD)()
