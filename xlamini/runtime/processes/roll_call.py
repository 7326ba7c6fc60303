"""Roll call: the missing ranks, determined after a rendezvous has timed out.

PJRT's coordination service admits nobody before all processes have connected, so it cannot be asked who is missing.
Process 0 therefore restarts it and briefly connects under every rank itself; from then on the service admits each
process that connects, and each writes its rank into the key-value store.
"""
from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

from jaxlib import _jax

_CLAIMING = 2.5
"""Seconds that process 0 has to connect under every rank; the others connect after that."""
_GATHERING = 2.5
_DISCONNECTING = 0.3
_LONGEST_FAREWELL = 10.0

Connect = Callable[[int], Any]


def missing_seen_by_coordinator(connect: Connect, num_processes: int) -> list[int]:
    """The missing ranks, in process 0 after it has restarted the coordination service; published to the others."""
    _claim_all_ranks(connect, num_processes)
    client = connect(0)
    client.connect()
    client.key_value_set("here/0", "")
    time.sleep(_CLAIMING + _GATHERING)
    here = {int(key.rpartition("/")[2]) for key, _ in client.key_value_dir_get("here/")}
    missing = [p for p in range(num_processes) if p not in here]
    client.key_value_set("missing", ",".join(map(str, missing)))
    wait_for_farewells(client, "told/", sorted(here - {0}))
    client.shutdown()
    return missing


def missing_from_coordinator(connect: Connect, process_id: int) -> list[int]:
    """The missing ranks in the other processes, as published by process 0."""
    time.sleep(_CLAIMING)
    client = connect(process_id)
    client.connect()
    client.key_value_set(f"here/{process_id}", "")
    missing = client.blocking_key_value_get("missing", int(4 * (_CLAIMING + _GATHERING) * 1000))
    client.key_value_set(f"told/{process_id}", "")
    client.shutdown()
    return [int(p) for p in missing.split(",") if p]


def wait_for_farewells(client: Any, folder: str, processes: Sequence[int]) -> None:
    """Wait, in process 0, until the others have announced under a key that they disconnect, and have had time to.

    The coordinator must not end before them, because a client that loses its connection aborts its process.
    """
    deadline = time.monotonic() + _LONGEST_FAREWELL
    while len(client.key_value_dir_get(folder)) < len(processes) and time.monotonic() < deadline:
        time.sleep(0.02)
    time.sleep(_DISCONNECTING)


def _claim_all_ranks(connect: Connect, num_processes: int) -> None:
    clients = [connect(i) for i in range(num_processes)]
    threads = [threading.Thread(target=_claim, args=(client,), daemon=True) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for client in clients:
        client.shutdown()


def _claim(client: Any) -> None:
    try:
        client.connect()
    except (RuntimeError, _jax.JaxRuntimeError):
        return  # the process itself has connected under this rank
