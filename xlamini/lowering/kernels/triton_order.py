"""The order of accesses to memory by the threads of one program on a GPU.

Threads run at their own pace, so a thread may read an element before another one, which has it in an earlier store,
has written it. Where two accesses to one memory need an order, all threads wait for each other in between.
"""
from __future__ import annotations

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

    def forget(self) -> None:
        """Around a branch or the body of a loop, any access may have come before."""
        self._pending = {memory: {READ, WRITE} for memory in self._memories}
