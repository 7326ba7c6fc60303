"""Orderly shutdown of a process group: all processes wait for one another, and the coordinator ends last."""
from __future__ import annotations

from typing import Any

from jaxlib import _jax

from xlamini.core import ProcessError
from xlamini.core.waits import announce
from xlamini.runtime.processes.group import LEFT, ProcessGroup
from xlamini.runtime.processes.heartbeat import Watch
from xlamini.runtime.processes.roll_call import wait_for_farewells


def leave(group: ProcessGroup, watch: Watch, clients: Any, timeout: float) -> None:
    """Leave the group once all processes have called this; ProcessError if one does not in time."""
    with announce(f"{group.title} has waited, in distributed.shutdown, for its own programs to end"):
        for client in clients:
            finish(client)
    try:
        group.exchange("distributed.shutdown", timeout=timeout)
        watch.stop()
        _say_goodbye(group)
    except _jax.JaxRuntimeError as error:
        raise ProcessError(f"distributed.shutdown: process 0, which coordinates, has gone ({error})") from None
    with announce(f"{group.title} has waited, in distributed.shutdown, for the coordinator"):
        group.client.shutdown()
    if group.service is not None:
        group.service.shutdown()


def _say_goodbye(group: ProcessGroup) -> None:
    if group.service is None:
        group.client.key_value_set(f"{LEFT}{group.process_id}", "")
    else:
        wait_for_farewells(group.client, LEFT, group.everyone[1:])


def finish(client: Any) -> None:
    """Wait for running programs on this process's devices: collectives of the others may depend on them."""
    for x in client.live_arrays():
        try:
            x.block_until_ready()
        except RuntimeError:
            if not x.is_deleted():  # another thread may delete it at any time
                raise
