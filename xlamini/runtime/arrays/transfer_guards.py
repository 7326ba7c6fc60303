"""Guards of jaxlib: what happens at transfers between host and devices, when arrays become cyclic garbage, and when
several threads run programs of several processes.

The C++ runtime checks them, in thread-local state before global state; the flags here write both.
"""

from __future__ import annotations

import threading
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Final

from jaxlib._jax import guard_lib

from xlamini.core.flags.config import Flag

_LEVELS = ("allow", "log", "disallow", "log_explicit", "disallow_explicit")
_GARBAGE_LEVELS = ("allow", "log", "fatal")


class _OpenGuards(threading.local):
    """The guards that contexts of this thread have set: for each context its fields, and their level."""

    def __init__(self) -> None:
        self.entries: list[tuple[tuple[str, ...], Any]] = []


_open = _OpenGuards()


class _Guard(Flag):
    """A flag whose values are also written to fields of jaxlib's guard state."""

    fields: tuple[str, ...]
    levels: Any

    def __init__(self, name: str, help: str, choices: tuple[str, ...], levels: Any, *fields: str):
        self.levels, self.fields = levels, fields
        super().__init__(name, None, help, type=str, optional=True, choices=choices)
        if self.value is not None:
            self._write_global(self.value)

    def set_global(self, value: Any) -> None:
        super().set_global(value)
        self._write_global(value)

    @contextmanager
    def _override(self, value: Any) -> Generator[None]:
        # As for flags, the contexts of asyncio's tasks may end in another order than they began.
        entries, entry = _open.entries, (self.fields, self._level(value))
        entries.append(entry)
        self._write_local()
        try:
            with super()._override(value):
                yield
        finally:
            entries[:] = [other for other in entries if other is not entry]
            self._write_local()

    def _write_global(self, value: str | None) -> None:
        for field in self.fields:
            setattr(guard_lib.global_state(), field, self._level(value))

    def _write_local(self) -> None:
        """Give each field the level of the last context that sets it."""
        for field in self.fields:
            levels = [level for fields, level in _open.entries if field in fields]
            setattr(guard_lib.thread_local_state(), field, levels[-1] if levels else None)

    def _level(self, value: str | None) -> Any:
        return None if value is None else getattr(self.levels, value.upper())


def _transfers(name: str, where: str, *fields: str) -> _Guard:
    return _Guard(name, f"what to do at transfers {where}", _LEVELS, guard_lib.TransferGuardLevel, *fields)


transfer_guard_host_to_device: Final = _transfers("transfer_guard_host_to_device", "to devices", "host_to_device")
transfer_guard_device_to_device: Final = _transfers(
    "transfer_guard_device_to_device", "between devices", "device_to_device"
)
transfer_guard_device_to_host: Final = _transfers("transfer_guard_device_to_host", "to the host", "device_to_host")
transfer_guard: Final = _transfers(
    "transfer_guard", "in all directions", "host_to_device", "device_to_device", "device_to_host"
)
array_garbage_collection_guard: Final = _Guard(
    "array_garbage_collection_guard",
    "what to do where an array is freed by the cycle collector",
    _GARBAGE_LEVELS,
    guard_lib.GarbageCollectionGuardLevel,
    "garbage_collect_array",
)

_FIELDS = ("host_to_device", "device_to_device", "device_to_host")
_ALLOW = guard_lib.TransferGuardLevel.ALLOW


def unguarded() -> AbstractContextManager[None]:
    """A context for transfers of the library's own, where the user sees none: the numbers of an `arange`."""
    return _under(_ALLOW) if is_guarded() else nullcontext()


def is_guarded() -> bool:
    """Whether a guard of transfers is set."""
    here, everywhere = guard_lib.thread_local_state(), guard_lib.global_state()
    for field in _FIELDS:  # `any(...)` of `_level_of` is eight calls, and each new program asks twice
        if getattr(here, field) is not None or getattr(everywhere, field) is not None:
            return True
    return False


def between_devices() -> AbstractContextManager[None]:
    """A context for a transfer between devices that goes by way of the host: the guard for devices holds for it."""
    if not is_guarded():
        return nullcontext()
    level = _level_of("device_to_device")
    return _under(_ALLOW if level is None else level)


def _level_of(field: str) -> Any:
    """The level of this thread, or that of the process; None if none is set."""
    level = getattr(guard_lib.thread_local_state(), field)
    return getattr(guard_lib.global_state(), field) if level is None else level


@contextmanager
def _under(level: Any) -> Generator[None]:
    state = guard_lib.thread_local_state()
    before = {field: getattr(state, field) for field in _FIELDS}
    try:
        for field in _FIELDS:
            setattr(state, field, level)
        yield
    finally:
        for field, outer in before.items():
            setattr(state, field, outer)


class _ThreadGuard(Flag):
    """The flag under which jaxlib refuses programs of several processes in all threads but the one that set it."""

    def __init__(self) -> None:
        super().__init__("thread_guard", False, "run programs of several processes in this thread only")
        if self.value:
            guard_lib.update_thread_guard_global_state(True)

    def set_global(self, value: Any) -> None:
        super().set_global(value)
        guard_lib.update_thread_guard_global_state(value)

    @contextmanager
    def _override(self, value: Any) -> Generator[None]:
        before = self.value
        guard_lib.update_thread_guard_global_state(value)
        try:
            with super()._override(value):
                yield
        finally:
            guard_lib.update_thread_guard_global_state(before)


thread_guard: Final = _ThreadGuard()

guard_state: Any = guard_lib.thread_local_state
"""The guards of this thread. `device_put` and `device_get` set their field while they run, because the level `disallow`
lets explicit transfers pass."""
