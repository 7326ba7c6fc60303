"""Platforms and their devices: which exist, which is the default.

Flag `platforms` says which to use, the best first. Without it the first accelerator that works is taken, else the CPU;
an accelerator that is there and does not start is passed over with one warning. A platform that was asked for and
cannot start raises; then nothing falls back in silence.
"""

from __future__ import annotations

import functools
import warnings

from xlamini.core import config
from xlamini.core.errors import PlatformError
from xlamini.core.provenance import user_stacklevel
from xlamini.runtime.devices import hardware
from xlamini.runtime.devices.clients import (
    Client,
    Device,
    lock,
    preferred_platforms,
    register_platform,
    start,
    started,
)
from xlamini.runtime.devices.plugins import candidates, how_to_install

__all__ = ["Client", "Device", "register_platform"]

_ALIASES = {"gpu": ("cuda", "rocm")}
_PUBLIC = {"cuda": "gpu", "rocm": "gpu"}
_chosen: dict[str | None, str] = {}


def client(backend: str | Client | None = None) -> Client:
    """The PJRT client of a platform, by default of the first one in use; PlatformError if it does not start."""
    if backend is None:
        return start(_default_name())
    if isinstance(backend, Client):
        return backend
    return started(backend) or start(platform_named(backend))


def platform_named(name: str) -> str:
    """The platform that a name means here: of an alias the one that is installed."""
    names = _ALIASES.get(name, (name,))
    ready = [n for n in names if started(n) is not None] or [n for n in names if any(candidates(n))]
    return (ready or names)[0]


def default_backend() -> str:
    """The name of the platform where arrays are made: `cpu`, `gpu`, `tpu`, or a plugin's own name.

    It is the first that flag `platforms` names, else the first accelerator that works, else `cpu`.

    >>> xlamini.default_backend()
    'cpu'
    """
    name = _default_name()
    return _PUBLIC.get(name, name)


def _default_name() -> str:
    asked = config.platforms.value
    found = _chosen.get(asked)
    if found is None:
        with lock:
            found = _chosen[asked] = _first_asked(asked) if asked else _first_that_works()
    return found


def names_in(asked: str) -> list[str]:
    """The names in the flag `platforms`; PlatformError if it is not written so."""
    names = [name.strip() for name in asked.split(",")]
    if not all(names):
        raise PlatformError(f"XLAMINI_PLATFORMS takes names separated by commas, such as 'cuda,cpu', but is {asked!r}")
    return names


def _first_asked(asked: str) -> str:
    name = platform_named(names_in(asked)[0])
    start(name)
    return name


def _first_that_works() -> str:
    works = (name for name in preferred_platforms() if name == "cpu" or _works(name))
    return next(works)


def _works(name: str) -> bool:
    """Whether an accelerator nobody asked for starts; nothing is tried where no such device can be."""
    if hardware.missing(name) is not None:
        return False
    if started(name) is None and not any(candidates(name)):
        _tell_of_unused(name)
        return False
    try:
        return bool(start(name).local_devices())
    except PlatformError as error:
        _warn(str(error))
        return False


def _tell_of_unused(name: str) -> None:
    if name in hardware.SEEN:
        _warn(f"there is a device of platform {name!r}, but its plugin is not installed; {how_to_install(name)}")


def _warn(text: str) -> None:
    more = "" if "xlamini doctor" in text else " (python -m xlamini doctor says more)"
    hint = "The platform is not used; XLAMINI_PLATFORMS=cpu silences this."
    warnings.warn(f"{text}{more}. {hint}", RuntimeWarning, stacklevel=user_stacklevel())


def devices(backend: str | Client | None = None) -> list[Device]:
    """All devices of a platform, those of other processes too.

    Args:
      backend: a platform's name, such as "cpu", "gpu" or "tpu"; None for the default one.

    Raises PlatformError, a RuntimeError, if the platform is not there or does not start.

    >>> xlamini.devices()[0]
    CpuDevice(id=0)
    """
    return client(backend).devices()


def local_devices(
    process_index: int | None = None, backend: str | Client | None = None, host_id: int | None = None
) -> list[Device]:
    """The devices that belong to a process, by default to this one."""
    wanted = host_id if process_index is None else process_index
    if wanted is None:
        return client(backend).local_devices()
    if not 0 <= wanted < process_count(backend):
        raise ValueError(
            f"there is no process {wanted}; process_count() is {process_count(backend)}"
        )
    return [d for d in devices(backend) if d.process_index == wanted]


def device_count(backend: str | Client | None = None) -> int:
    """How many devices a platform has in all processes."""
    return client(backend).device_count()


def local_device_count(backend: str | Client | None = None) -> int:
    """How many devices a platform has in this process."""
    return client(backend).local_device_count()


def process_index(backend: str | Client | None = None) -> int:
    """The number of this process among those that compute together."""
    return client(backend).process_index()


def process_count(backend: str | Client | None = None) -> int:
    """How many processes compute together."""
    return 1 + max(d.process_index for d in devices(backend))


def process_indices(backend: str | Client | None = None) -> list[int]:
    """The numbers of all processes that compute together.

    >>> xlamini.process_indices()
    [0]
    """
    return sorted({d.process_index for d in devices(backend)})


def default_device() -> Device:
    """Where new arrays go: flag `default_device` if it is set, else the first local device."""
    chosen = config.default_device.value
    if chosen is None:
        return _first_device(_default_name())
    if isinstance(chosen, Device):
        return chosen
    if isinstance(chosen, str):
        return _first_device(chosen)
    raise TypeError(f"default_device must be a device or a platform's name, got {chosen!r}; see xlamini.devices()")


@functools.cache
def _first_device(backend: str) -> Device:
    return local_devices(backend=backend)[0]
