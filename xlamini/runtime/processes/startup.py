"""`xlamini.distributed`: start-up and shutdown of multi-process (SPMD) programs, on one machine or many.

Each process runs the same script and calls `initialize` before it uses a device. From then on `xlamini.devices()` lists
the devices of all processes, and a program over a mesh of them runs in all processes at once.
"""
from __future__ import annotations

import atexit
import os
from collections.abc import Sequence
from typing import NoReturn

from xlamini.core import ProcessError
from xlamini.core.flags import config
from xlamini.runtime.devices.clients import started_clients
from xlamini.runtime.processes import clusters
from xlamini.runtime.processes.clusters import ProcessSpec
from xlamini.runtime.processes.group import ProcessGroup, here, say
from xlamini.runtime.processes.heartbeat import Watch, end_process
from xlamini.runtime.processes.rendezvous import RendezvousPlan, default_bind, join, split_address
from xlamini.runtime.processes.shutdown import leave

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
    """Join the process group; every process calls it, before it uses a device.

    Arguments left out are read from JAX_COORDINATOR_ADDRESS, JAX_COORDINATOR_BIND_ADDRESS and JAX_LOCAL_DEVICE_IDS, or
    from the environment of `python -m xlamini.launch`, SLURM, Open MPI, Kubernetes (an Indexed Job) or Cloud TPU.
    Process 0 prints one line about the group. When the program ends, processes wait for one another; a process that
    fails or dies ends the others, which report its rank and, if available, its error.

    Args:
      coordinator_address: `host:port` where process 0 listens and all others can reach it.
      num_processes: the number of processes.
      process_id: the rank of this process, from 0.
      local_device_ids: the GPUs of its machine that this process uses; all by default, and one for each process of
        a machine under SLURM and Open MPI.
      cluster_detection_method: "launcher", "slurm", "ompi", "k8s", "cloud_tpu", or "deactivate" for none; by default
        the first whose environment variables are set.
      initialization_timeout: seconds to wait for all processes to connect.
      heartbeat_timeout_seconds: seconds without a heartbeat after which a process counts as dead.
      shutdown_timeout_seconds: seconds to wait at the end for the other processes to finish.
      coordinator_bind_address: the interface and port where process 0 listens; by default all interfaces, at the
        coordinator's port, but only this machine's own where the coordinator's address is 127.0.0.1 or localhost.

    Raises:
      RuntimeError: called a second time, or after a device has been used.
      ProcessError: not all processes connected in time; the message lists the missing ones. It is a RuntimeError.
      ValueError: a number or an address is invalid, or missing both in the arguments and in the environment.

    A program with these lines, run once on each of two machines, computes on the devices of both:

        xlamini.distributed.initialize("10.0.0.1:1234", num_processes=2, process_id=0)  # 1 on the other
        total = xlamini.numpy.arange(4.0, device=NamedSharding(mesh, P("x"))).sum()

    >>> device = xlamini.devices()[0]
    >>> initialize("10.0.0.1:1234", num_processes=2, process_id=0)
    Traceback (most recent call last):
        ...
    RuntimeError: distributed.initialize was called after devices had been used (cpu...): ...
    """
    _check_first()
    method, found = clusters.detect(os.environ, cluster_detection_method)
    spec = _merge(found, coordinator_address, num_processes, process_id, local_device_ids)
    address = _check_spec(spec, method)
    bind = coordinator_bind_address or os.environ.get("JAX_COORDINATOR_BIND_ADDRESS")
    bind = bind or default_bind(address)
    plan = RendezvousPlan(
        address, bind, *_numbers(spec), initialization_timeout, heartbeat_timeout_seconds, shutdown_timeout_seconds
    )
    here.group = join(plan, spec)
    _Started.watch = Watch(here.group, heartbeat_timeout_seconds, address)
    _Started.shutdown_timeout = shutdown_timeout_seconds
    atexit.register(_at_exit)
    _print_plan(here.group, plan, method)


def shutdown() -> None:
    """Leave the process group; called automatically at exit.

    It waits for the other processes to finish. Without a call of `initialize` it does nothing.

    Raises ProcessError if another process does not finish within `shutdown_timeout_seconds`.

    >>> xlamini.distributed.shutdown()
    """
    group, watch = here.group, _Started.watch
    if group is not None and watch is not None:
        leave(group, watch, started_clients().values(), _Started.shutdown_timeout)
    here.group = _Started.watch = None
    atexit.unregister(_at_exit)


def is_initialized() -> bool:
    """Whether this process has joined a group with `initialize`.

    >>> xlamini.distributed.is_initialized()
    False
    """
    return here.group is not None


def _at_exit() -> None:
    """Shut down at exit; a process whose program has failed does not wait for the others, which end by themselves."""
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


def _merge(
    found: ProcessSpec, address: str | None, count: int | None, number: int | None, devices: int | Sequence[int] | None
) -> ProcessSpec:
    """The arguments, and for those left out the values from the environment."""
    own = (devices,) if isinstance(devices, int) else _local_device_ids() if devices is None else devices
    there = os.environ.get("JAX_COORDINATOR_ADDRESS") if address is None else address
    return ProcessSpec(
        found.coordinator_address if there is None else there,
        found.num_processes if count is None else count,
        found.process_id if number is None else number,
        found.local_device_ids if own is None else tuple(own),
    )


def _local_device_ids() -> list[int] | None:
    """The device numbers in JAX_LOCAL_DEVICE_IDS, such as `0,1`."""
    text = os.environ.get("JAX_LOCAL_DEVICE_IDS")
    if not text:
        return None
    try:
        return [int(word) for word in text.split(",")]
    except ValueError:
        raise ValueError(
            f"distributed.initialize: JAX_LOCAL_DEVICE_IDS={text!r} must be device numbers such as '0,1'"
        ) from None


def _check_spec(spec: ProcessSpec, method: str | None) -> str:
    """Check that the rendezvous has all it needs; returns the coordinator's address."""
    names = ("coordinator_address", "num_processes", "process_id")
    for name, value in zip(names, spec, strict=False):
        if value is None:
            _raise_missing(name, method)
    count, number = _numbers(spec)[::-1]
    if not 0 <= number < count:
        raise ValueError(
            f"distributed.initialize: process_id={number} must be at least 0 and below num_processes={count}"
        )
    assert spec.coordinator_address is not None
    split_address(spec.coordinator_address)
    return spec.coordinator_address


def _raise_missing(name: str, method: str | None) -> NoReturn:
    known = "no scheduler that xlamini knows started this process" if method is None else f"{method} does not tell it"
    raise ValueError(
        f"distributed.initialize: {name} is not given, and {known}; pass {name}=, or start the processes with "
        "python -m xlamini.launch -n 4 script.py"
    )


def _numbers(spec: ProcessSpec) -> tuple[int, int]:
    """The rank of the process and the number of processes; TypeError unless both are ints."""
    for name in ("process_id", "num_processes"):
        value = getattr(spec, name)
        if type(value) is not int:
            raise TypeError(f"distributed.initialize: {name} must be an int, got {value!r}")
    assert spec.process_id is not None and spec.num_processes is not None
    return spec.process_id, spec.num_processes


def _print_plan(group: ProcessGroup, plan: RendezvousPlan, method: str | None) -> None:
    """Print one line about the group, in process 0."""
    if group.process_id == 0 and config.print_start.value:
        count, found = group.num_processes, f", as {method} says" if method else ""
        who = "1 process computes" if count == 1 else f"{count} processes compute together"
        say(f"{who}; process 0 coordinates, at {plan.address}{found}")
