"""Platform selection, and the devices of a platform.

Flag `platforms` lists the platforms to use, the default first. Without it the first accelerator that works is the
default, else the CPU; an accelerator that exists but does not start is skipped with one warning. A platform that the
flag names and that cannot start raises, without a silent fallback.
"""

from __future__ import annotations

import functools
import operator
import warnings

from xlamini.core import PlatformError, user_stacklevel
from xlamini.core.flags import config, device_flags
from xlamini.runtime.devices import hardware
from xlamini.runtime.devices.clients import (
    Client,
    Device,
    emptied_at_exit,
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
_default_names: dict[str | None, str] = {}


def client(backend: str | Client | None = None) -> Client:
    """The PJRT client of a platform, by default of the default backend; PlatformError if it does not start."""
    if backend is None:
        return start(_default_name())
    if isinstance(backend, Client):
        return backend
    return started(backend) or start(resolve_platform(backend))


def resolve_platform(name: str) -> str:
    """The platform that a name or alias resolves to; for an alias, the one that is installed."""
    names = _ALIASES.get(name, (name,))
    ready = [n for n in names if started(n) is not None] or [n for n in names if any(candidates(n))]
    return (ready or names)[0]


def default_backend() -> str:
    """The name of the default platform: `cpu`, `gpu`, `tpu`, or a plugin's own name.

    It is the first that flag `platforms` names, else the first accelerator that works, else `cpu`.

    >>> xlamini.default_backend()
    'cpu'
    """
    name = _default_name()
    return _PUBLIC.get(name, name)


def _default_name() -> str:
    asked = device_flags.platforms.value
    name = _default_names.get(asked)
    if name is None:
        with lock:
            name = _default_names[asked] = _first_asked(asked) if asked else _first_that_works()
    return name


def names_in(asked: str) -> list[str]:
    """The names in the flag `platforms`; PlatformError if it is malformed."""
    names = [name.strip() for name in asked.split(",")]
    if not all(names):
        raise PlatformError(f"XLAMINI_PLATFORMS takes names separated by commas, such as 'cuda,cpu', but is {asked!r}")
    return names


def _first_asked(asked: str) -> str:
    name = resolve_platform(names_in(asked)[0])
    start(name)
    return name


def _first_that_works() -> str:
    works = (name for name in preferred_platforms() if name == "cpu" or _works(name))
    return next(works)


def _works(name: str) -> bool:
    """Whether an accelerator starts, for automatic selection; not tried if the machine cannot have such a device."""
    if hardware.missing(name) is not None:
        return False
    if started(name) is None and not any(candidates(name)):
        _warn_unused(name)
        return False
    try:
        return bool(start(name).local_devices())
    except PlatformError as error:
        _warn(str(error))
        return False


def _warn_unused(name: str) -> None:
    if name in hardware.DETECTABLE:
        _warn(f"there is a device of platform {name!r}, but its plugin is not installed; {how_to_install(name)}")


def _warn(text: str) -> None:
    more = "" if "xlamini doctor" in text else " (python -m xlamini doctor says more)"
    hint = "The platform is not used; XLAMINI_PLATFORMS=cpu silences this."
    warnings.warn(f"{text}{more}. {hint}", RuntimeWarning, stacklevel=user_stacklevel())


def devices(backend: str | Client | None = None) -> list[Device]:
    """All devices of a platform, including those of other processes: those of process 0 first, and so on.

    Args:
      backend: a platform's name, such as "cpu", "gpu" or "tpu"; None for the default one.

    Raises PlatformError, a RuntimeError, if the platform does not exist or does not start.

    >>> xlamini.devices()[0]
    CpuDevice(id=0)
    """
    order = _BY_PROCESS if device_flags.sort_devices_by_process_index.value else _BY_ID
    return sorted(client(backend).devices(), key=order)


_BY_PROCESS, _BY_ID = operator.attrgetter("process_index", "id"), operator.attrgetter("id")


def local_devices(
    process_index: int | None = None, backend: str | Client | None = None, host_id: int | None = None
) -> list[Device]:
    """The devices of one process, by default of this one.

    Args:
      process_index: the rank of the process; None for this one.
      backend: a platform's name, such as "cpu", "gpu" or "tpu"; None for the default one.
      host_id: `process_index` under its older name.

    Raises ValueError if there is no such process, PlatformError as `devices` does.

    >>> local_devices()[0]
    CpuDevice(id=0)
    >>> local_devices(process_index=7)
    Traceback (most recent call last):
        ...
    ValueError: there is no process 7; process_count() is 1
    """
    rank = host_id if process_index is None else process_index
    if rank is None:
        return client(backend).local_devices()
    if not 0 <= rank < process_count(backend):
        raise ValueError(
            f"there is no process {rank}; process_count() is {process_count(backend)}"
        )
    return [d for d in devices(backend) if d.process_index == rank]


def device_count(backend: str | Client | None = None) -> int:
    """The number of devices of a platform in all processes; PlatformError as `devices` raises it.

    >>> device_count("cpu") == len(xlamini.devices("cpu"))
    True
    """
    return client(backend).device_count()


def local_device_count(backend: str | Client | None = None) -> int:
    """The number of devices of a platform in this process; PlatformError as `devices` raises it.

    >>> local_device_count() == len(xlamini.local_devices())
    True
    """
    return client(backend).local_device_count()


def process_index(backend: str | Client | None = None) -> int:
    """The rank of this process, from 0; without `distributed.initialize` it is 0.

    >>> process_index()
    0
    >>> if process_index() == 0:
    ...     print("one process of all writes the log")
    one process of all writes the log
    """
    return client(backend).process_index()


def process_count(backend: str | Client | None = None) -> int:
    """The number of processes that compute together: 1 without `distributed.initialize`.

    >>> process_count()
    1
    """
    return 1 + max(d.process_index for d in devices(backend))


def process_indices(backend: str | Client | None = None) -> list[int]:
    """The ranks of all processes.

    >>> xlamini.process_indices()
    [0]
    """
    return sorted({d.process_index for d in devices(backend)})


def host_id(backend: str | Client | None = None) -> int:
    """`process_index` under its older name.

    >>> host_id() == xlamini.process_index()
    True
    """
    return process_index(backend)


def host_ids(backend: str | Client | None = None) -> list[int]:
    """`process_indices` under its older name.

    >>> host_ids() == xlamini.process_indices()
    True
    """
    return process_indices(backend)


def host_count(backend: str | Client | None = None) -> int:
    """`process_count` under its older name.

    >>> host_count() == xlamini.process_count()
    True
    """
    return process_count(backend)


def default_device() -> Device:
    """The device of new arrays: flag `default_device` if it is set, else the first local device."""
    device = config.default_device.value
    if device is None:
        return _first_device(_default_name())
    if isinstance(device, Device):
        return device
    if isinstance(device, str):
        return _first_device(device)
    raise TypeError(f"default_device must be a device or a platform's name, got {device!r}; see xlamini.devices()")


@emptied_at_exit
@functools.cache
def _first_device(backend: str) -> Device:
    return local_devices(backend=backend)[0]
