"""The process group: exchange of values between processes, through the key-value store of PJRT's distributed runtime.

All processes make the same exchanges in the same order. Each exchange names its purpose, so that processes which have
diverged get an error in place of a deadlock.
"""
from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from jaxlib import _jax

from xlamini.core import ProcessError
from xlamini.core.waits import QUIET, say

_NAMESPACE = "xlamini"
LEFT = f"{_NAMESPACE}/left/"
"""The keys under which processes announce that they disconnect."""
_SLICE = 2.0


class ProcessGroup:
    """A process's connection to the other processes.

    Args:
      client: the client of the coordination service.
      service: the coordination service, in process 0; None in the others.
      process_id: the rank of this process.
      num_processes: the number of processes.
      local_device_ids: the devices of its machine that this process uses; None for all.
      host: this process's address, as the others reach it.
    """

    client: Any
    service: Any
    host: str | None
    local_device_ids: tuple[int, ...] | None
    num_processes: int
    process_id: int

    def __init__(
        self,
        client: Any,
        service: Any,
        process_id: int,
        num_processes: int,
        local_device_ids: tuple[int, ...] | None = None,
        host: str | None = None,
    ):
        self.client, self.service = client, service
        self.process_id, self.num_processes = process_id, num_processes
        self.local_device_ids, self.host = local_device_ids, host
        self.ended = False
        self._exchanges: Counter[tuple[int, ...]] = Counter()
        self._lock = threading.Lock()

    @property
    def everyone(self) -> tuple[int, ...]:
        """The ranks of all processes."""
        return tuple(range(self.num_processes))

    @property
    def title(self) -> str:
        """The rank of this process in words, for messages."""
        return f"process {self.process_id} of {self.num_processes}"

    def exchange(
        self, what: str, value: str = "", processes: Sequence[int] | None = None, timeout: float | None = None
    ) -> dict[int, str]:
        """All-gather of strings: the value of each process by its rank, once all have arrived.

        Args:
          what: the purpose of the exchange, in words; it must be equal in all processes.
          value: the value of this process.
          processes: the ranks that take part, in order; all by default.
          timeout: seconds to wait; for ever by default, because a process that dies ends the others.

        Raises ProcessError if a process does not arrive in time, or arrives with another purpose.
        """
        members = self.everyone if processes is None else tuple(processes)
        with self._lock:
            self._exchanges[members] += 1
            number = self._exchanges[members]
            self.put(_key(members, number, self.process_id), f"{what}\n{value}")
            values = self._collect(members, number, what, timeout)
            self._forget(members, number - 1)
        _check_same(what, {p: text.partition("\n")[0] for p, text in values.items()})
        return {p: text.partition("\n")[2] for p, text in values.items()}

    def put(self, key: str, value: str) -> None:
        """Write a value to the key-value store."""
        self.client.key_value_set(f"{_NAMESPACE}/{key}", value, True)

    def get(self, key: str, seconds: float) -> str | None:
        """The value of a key, waiting for another process to write it; None after a time-out."""
        try:
            return self.client.blocking_key_value_get(f"{_NAMESPACE}/{key}", int(seconds * 1000))
        except _jax.JaxRuntimeError as error:
            if "DEADLINE_EXCEEDED" in str(error):
                return None
            raise

    def below(self, key: str) -> dict[str, str]:
        """All values under a key prefix, by the rest of their keys."""
        start = f"{_NAMESPACE}/{key}/"
        return {k.removeprefix(start): v for k, v in self.client.key_value_dir_get(start)}

    def _collect(self, members: tuple[int, ...], number: int, what: str, timeout: float | None) -> dict[int, str]:
        values: dict[int, str] = {}
        start, reported = time.monotonic(), False
        while absent := [p for p in members if p not in values]:
            text = self.get(_key(members, number, absent[0]), _SLICE if timeout is None else min(_SLICE, timeout))
            if text is not None:
                values[absent[0]] = text
                continue
            waited = time.monotonic() - start
            if timeout is not None and waited >= timeout:
                state = self._waiting_for(members, number, what)
                raise ProcessError(f"{state} within {timeout:g} s; its own output says why")
            if not reported and waited > QUIET:
                say(f"{self._waiting_for(members, number, what)} for {waited:.0f} s")
                reported = True
        return values

    def _waiting_for(self, members: tuple[int, ...], number: int, what: str) -> str:
        come = self.below(_key(members, number))
        return f"{self.title} is at {what}, where {numbered(p for p in members if str(p) not in come)} did not come"

    def _forget(self, members: tuple[int, ...], number: int) -> None:
        """Delete this process's value of an earlier exchange: all have read it, since they have arrived at this one."""
        if number:
            self.client.key_value_delete(f"{_NAMESPACE}/{_key(members, number, self.process_id)}")


class _OwnGroup:
    """A holder of the group that this process belongs to."""

    group: ProcessGroup | None = None


here: Final = _OwnGroup()


def spans_processes(devices: Sequence[Any]) -> tuple[int, ...]:
    """The ranks of the processes that own devices; empty if all belong to one process or there is no group."""
    if here.group is None:
        return ()
    found = sorted({d.process_index for d in devices})
    return tuple(found) if len(found) > 1 else ()


def cpu_options() -> dict[str, Any]:
    """The options of the CPU client in a process group; its collectives are gloo's."""
    group = here.group
    if group is None or group.num_processes == 1:
        return {}
    gloo = _jax.make_gloo_tcp_collectives(distributed_client=group.client, hostname=group.host)
    numbers = {"node_id": group.process_id, "num_nodes": group.num_processes}
    return {"distributed_client": group.client, "collectives": gloo, **numbers}


def client() -> Any:
    """The client of the coordination service; None without a process group."""
    return here.group and here.group.client


def gpu_options() -> dict[str, Any]:
    """The options of a GPU plugin in a process group: the rank, and the visible devices of this process."""
    group = here.group
    if group is None:
        return {}
    own = {} if group.local_device_ids is None else {"visible_devices": list(group.local_device_ids)}
    return {"node_id": group.process_id, "num_nodes": group.num_processes, **own}


def numbered(processes: Any) -> str:
    """The text of a list of ranks: `process 3`, `processes 1, 2`."""
    numbers = [str(p) for p in processes]
    return f"process{'es' if len(numbers) > 1 else ''} {', '.join(numbers)}"


def _key(members: tuple[int, ...], number: int, process: int | None = None) -> str:
    name = f"turns/{'-'.join(map(str, members))}/{number}"
    return name if process is None else f"{name}/{process}"


def _check_same(what: str, values: Mapping[int, str]) -> None:
    if set(values.values()) == {what}:
        return
    lines = "; ".join(f"process {p} is at {text}" for p, text in sorted(values.items()))
    raise ProcessError(
        f"processes have come to different places: {lines}. All must run the same programs in the same order: look for "
        "an `if` on process_index(), or for data that decides how often a loop runs"
    )
