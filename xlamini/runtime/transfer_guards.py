"""Guards of jaxlib: what happens at transfers between host and devices, when arrays become cyclic garbage, and when
several threads run programs of several processes.

The C++ runtime checks them, in thread-local state before global state; the flags here write both.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from jaxlib._jax import guard_lib

from xlamini.core.config import Flag

_LEVELS = ("allow", "log", "disallow", "log_explicit", "disallow_explicit")
_GARBAGE_LEVELS = ("allow", "log", "fatal")


class _Guard(Flag):
    """A flag whose values are also written to fields of jaxlib's guard state."""

    def __init__(self, name: str, help: str, choices: tuple[str, ...], levels: Any, fields: tuple[str, ...]):
        self.levels, self.fields = levels, fields
        super().__init__(name, None, help, type=str, optional=True, choices=choices)
        if self.value is not None:
            self._write(guard_lib.global_state(), self.value)

    def set_global(self, value: Any) -> None:
        super().set_global(value)
        self._write(guard_lib.global_state(), value)

    @contextmanager
    def _override(self, value: Any) -> Generator[None]:
        local = guard_lib.thread_local_state()
        before = [getattr(local, field) for field in self.fields]
        self._write(local, value)
        try:
            with super()._override(value):
                yield
        finally:
            for field, level in zip(self.fields, before, strict=True):
                setattr(local, field, level)

    def _write(self, state: Any, value: str | None) -> None:
        for field in self.fields:
            setattr(state, field, None if value is None else self.levels[value.upper()])


def _transfers(name: str, help: str, *fields: str) -> _Guard:
    levels = guard_lib.TransferGuardLevel
    by_name = {level.upper(): getattr(levels, level.upper()) for level in _LEVELS}
    return _Guard(name, help, _LEVELS, by_name, fields)


_DIRECTIONS = ("host_to_device", "device_to_device", "device_to_host")
transfer_guard_host_to_device = _transfers(
    "transfer_guard_host_to_device", "what to do at transfers to devices", "host_to_device"
)
transfer_guard_device_to_device = _transfers(
    "transfer_guard_device_to_device", "what to do at transfers between devices", "device_to_device"
)
transfer_guard_device_to_host = _transfers(
    "transfer_guard_device_to_host", "what to do at transfers to the host", "device_to_host"
)
transfer_guard = _transfers("transfer_guard", "what to do at transfers in all directions", *_DIRECTIONS)
array_garbage_collection_guard = _Guard(
    "array_garbage_collection_guard",
    "what to do where an array is freed by the cycle collector",
    _GARBAGE_LEVELS,
    guard_lib.GarbageCollectionGuardLevel,
    ("garbage_collect_array",),
)

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


thread_guard = _ThreadGuard()

guard_state = guard_lib.thread_local_state
"""The guards of this thread. `device_put` and `device_get` set their field while they run, because the level `disallow`
lets explicit transfers pass."""
