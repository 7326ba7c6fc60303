"""Many processes, one program: start-up and end of processes that compute together, on one machine or many.

Each process runs the same script and calls `initialize` before it uses a device. From then on `xlamini.devices()` are
those of all processes, and programs over a mesh of them run in all at once.
"""
from __future__ import annotations

import atexit
import os
from collections.abc import Sequence
from typing import NoReturn

from xlamini.core import config
from xlamini.core.errors import ProcessError
from xlamini.runtime.devices.clients import started_clients
from xlamini.runtime.processes import clusters
from xlamini.runtime.processes.clusters import Seat
from xlamini.runtime.processes.group import Group, here, say
from xlamini.runtime.processes.joining import Plan, join, split_address
from xlamini.runtime.processes.leaving import leave
from xlamini.runtime.processes.watching import Watch, end_process

__all__ = ["initialize", "is_initialized", "shutdown"]


class _Started:
    watch: Watch | None = None
    shutdown_timeout = 300


def initialize(
    coordinator_address: str | None = None,
    num_processes: int | None = None,
    process_id: int | None = None,
    local_device_ids: int | Sequence[int] | None = None,
    cluster_detection_method: str | None = None,
    initialization_timeout: int = 300,
    heartbeat_timeout_seconds: int = 20,
    shutdown_timeout_seconds: int = 300,
    coordinator_bind_address: str | None = None,
) -> None:
    """Join the processes that compute together; all of them call it, before they use a device.

    What is not given is taken from the environment: of `python -m xlamini.launch`, SLURM, Open MPI, Kubernetes (an
    Indexed Job) or Cloud TPU. Process 0 prints one line that says who has come. When the program ends, processes wait
    for one another; one that fails or dies ends the others, which say its number and, where it is known, its error.

    Args:
      coordinator_address: `host:port` where process 0 listens and all others can reach it.
      num_processes: how many there are.
      process_id: which of them this is, from 0.
      local_device_ids: the GPUs of its machine that this process uses; all by default, and one for each process of
        a machine under SLURM and Open MPI.
      cluster_detection_method: the one to ask: "launcher", "slurm", "ompi", "k8s", "cloud_tpu", or "deactivate" to ask
        none; by default the first that knows this process.
      initialization_timeout: seconds to wait for all to come.
      heartbeat_timeout_seconds: seconds after which a process that gives no sign of life counts as dead.
      shutdown_timeout_seconds: seconds to wait at the end for the others to end too.
      coordinator_bind_address: where process 0 listens if that is not all interfaces at the coordinator's port.

    Raises:
      RuntimeError: it has been called before, or a device has been used.
      ProcessError: not all processes came in time; it says which. It is a RuntimeError.
      ValueError: a number or an address is missing, and the environment does not tell it, or it cannot be.
    """
    _check_first()
    method, found = clusters.detected(os.environ, cluster_detection_method)
    seat = _seat(found, coordinator_address, num_processes, process_id, local_device_ids)
    address = _checked(seat, method)
    bind = coordinator_bind_address or f"[::]:{split_address(address)[1]}"
    plan = Plan(
        address, bind, *_numbers(seat), initialization_timeout, heartbeat_timeout_seconds, shutdown_timeout_seconds
    )
    here.group = join(plan, seat)
    _Started.watch = Watch(here.group, heartbeat_timeout_seconds, address)
    _Started.shutdown_timeout = shutdown_timeout_seconds
    atexit.register(_at_exit)
    _print_plan(here.group, plan, method)


def shutdown() -> None:
    """Leave the processes that compute together; called at the end of the program if it has not been before.

    It waits for the others to come to their ends too. Nothing happens in a process that has not called `initialize`.

    Raises ProcessError if one does not come within `shutdown_timeout_seconds`.

    >>> xlamini.distributed.shutdown()
    """
    group, watch = here.group, _Started.watch
    if group is not None and watch is not None:
        leave(group, watch, started_clients().values(), _Started.shutdown_timeout)
    here.group = _Started.watch = None
    atexit.unregister(_at_exit)


def is_initialized() -> bool:
    """Whether this process has joined others with `initialize`.

    >>> xlamini.distributed.is_initialized()
    False
    """
    return here.group is not None


def _at_exit() -> None:
    """A process whose program has failed does not wait for the others, which have been told, and end."""
    try:
        if _Started.watch is None or not _Started.watch.failed:
            return shutdown()
    except ProcessError as error:
        say(str(error))
    end_process()


def _check_first() -> None:
    if here.group is not None:
        raise RuntimeError("distributed.initialize has been called before; call it once, at the start of the program")
    used = started_clients()
    if used:
        raise RuntimeError(
            f"distributed.initialize was called after devices had been used ({', '.join(used)}): call it before arrays "
            "are made, programs run, or xlamini.devices() is asked"
        )


def _seat(
    found: Seat, address: str | None, count: int | None, number: int | None, devices: int | Sequence[int] | None
) -> Seat:
    """What is given, and for the rest what the environment says."""
    own = (devices,) if isinstance(devices, int) else devices
    return Seat(
        found.coordinator_address if address is None else address,
        found.num_processes if count is None else count,
        found.process_id if number is None else number,
        found.local_device_ids if own is None else tuple(own),
    )


def _checked(seat: Seat, method: str | None) -> str:
    """The coordinator's address, once everything is there that joining needs."""
    names = ("coordinator_address", "num_processes", "process_id")
    for name, value in zip(names, seat, strict=False):
        if value is None:
            _say_missing(name, method)
    count, number = _numbers(seat)[::-1]
    if not 0 <= number < count:
        raise ValueError(
            f"distributed.initialize: process_id={number} must be at least 0 and below num_processes={count}"
        )
    assert seat.coordinator_address is not None
    split_address(seat.coordinator_address)
    return seat.coordinator_address


def _say_missing(name: str, method: str | None) -> NoReturn:
    known = "no scheduler that xlamini knows started this process" if method is None else f"{method} does not tell it"
    raise ValueError(
        f"distributed.initialize: {name} is not given, and {known}; pass {name}=, or start the processes with "
        "python -m xlamini.launch -n 4 script.py"
    )


def _numbers(seat: Seat) -> tuple[int, int]:
    """The process's number and how many there are; TypeError for what are no ints."""
    for name in ("process_id", "num_processes"):
        value = getattr(seat, name)
        if type(value) is not int:
            raise TypeError(f"distributed.initialize: {name} must be an int, got {value!r}")
    assert seat.process_id is not None and seat.num_processes is not None
    return seat.process_id, seat.num_processes


def _print_plan(group: Group, plan: Plan, method: str | None) -> None:
    """What has come of it, in one line of process 0."""
    if group.process_id == 0 and config.print_start.value:
        count, found = group.num_processes, f", as {method} says" if method else ""
        who = "1 process computes" if count == 1 else f"{count} processes compute together"
        say(f"{who}; process 0 coordinates, at {plan.address}{found}")
