"""The order of accesses to memory by the threads of one program on a GPU.

Threads run at their own pace, so a thread may read an element before another one, which has it in an earlier store,
has written it. Where two accesses to one memory need an order, all threads wait for each other in between.
"""
from __future__ import annotations

from collections.abc import Iterable

READ, WRITE, ATOMIC = "read", "write", "atomic"

_AFTER = {READ: {WRITE, ATOMIC}, WRITE: {READ, WRITE, ATOMIC}, ATOMIC: {READ, WRITE}}
"""The accesses that one must come after."""


class MemoryOrder:
    """The accesses since the threads last waited, by the number of a memory that the kernel writes."""

    def __init__(self, memories: set[int]):
        self._memories = memories
        self._pending: dict[int, set[str]] = {}

    def needs_wait(self, memory: int | None, access: str) -> bool:
        """Note an access; whether threads must wait before it."""
        if memory not in self._memories:
            return False
        waits = bool(self._pending.get(memory, set()) & _AFTER[access])
        if waits:
            self._pending = {}
        self._pending.setdefault(memory, set()).add(access)
        return waits

    def accessed(self, memories: Iterable[int | None]) -> None:
        """Around a branch or a loop that takes these memories, any access to them may have come before."""
        for memory in self._memories.intersection(memories):
            self._pending[memory] = {READ, WRITE}

    def pending(self) -> dict[int, set[str]]:
        """The accesses since the threads last waited."""
        return {memory: set(accesses) for memory, accesses in self._pending.items()}

    def join(self, before: dict[int, set[str]]) -> None:
        """At the end of a region that may not have run: what was pending before is pending still."""
        for memory, accesses in before.items():
            self._pending.setdefault(memory, set()).update(accesses)
