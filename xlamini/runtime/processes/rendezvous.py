"""Rendezvous: process 0 starts the coordination service, all processes connect to it and wait for one another.

PJRT's client aborts its process if it cannot connect, unless it is given a callback, whose failure becomes an exception
here. A client with a callback would also swallow later failures, so each process connects twice, the second time
without the callback; `heartbeat` detects and reports failures after that.
"""
from __future__ import annotations

import ipaddress
import math
import os
import queue
import socket
import threading
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any, NamedTuple

from jaxlib import _jax, utils as _jaxlib_utils

from xlamini.core import ProcessError
from xlamini.core.waits import announce
from xlamini.runtime.devices.plugins import quiet
from xlamini.runtime.processes.clusters import ProcessSpec
from xlamini.runtime.processes.group import ProcessGroup, numbered
from xlamini.runtime.processes.head_count import HeadCount, number_told
from xlamini.runtime.processes.roll_call import missing_from_coordinator, missing_seen_by_coordinator

_RESERVE = 6.0
"""Seconds of the time-out reserved for the roll call, which finds the missing processes."""
_ERRORS, _FATAL_ONLY = 2, 3


class RendezvousPlan(NamedTuple):
    """The parameters of the rendezvous: the coordinator's address, this process's rank, the time-outs in seconds."""

    address: str
    bind: str
    process_id: int
    num_processes: int
    initialization: float
    heartbeat: int
    shutdown: int

    @property
    def patience(self) -> int:
        """Seconds to wait for the others."""
        return max(1, math.ceil(self.initialization - min(_RESERVE, self.initialization / 2)))

    def serve(self) -> Any:
        """Start the coordination service."""
        return _jax.get_distributed_runtime_service(
            self.bind,
            self.num_processes,
            heartbeat_timeout=self.heartbeat,
            cluster_register_timeout=self.patience,
            shutdown_timeout=self.shutdown,
            recoverable=True,  # otherwise it aborts all processes when one dies
        )

    def client(self, process_id: int, patience: int | None = None, **more: Any) -> Any:
        """A client that is not connected."""
        return _jax.get_distributed_runtime_client(
            self.address,
            process_id,
            init_timeout=self.patience if patience is None else patience,
            heartbeat_timeout=self.heartbeat,
            shutdown_timeout=self.shutdown,
            shutdown_on_destruction=False,
            use_compression=True,
            **more,
        )

    def careful_client(self, process_id: int) -> Any:
        """A client that raises if it cannot connect, in place of aborting the process."""
        return self.client(process_id, missed_heartbeat_callback=_nothing)


def join(plan: RendezvousPlan, spec: ProcessSpec) -> ProcessGroup:
    """Connect this process to the group; ProcessError, with the missing ranks, if not all connect in time."""
    with _quiet_logs():
        service = _start(plan)
        missing = _with_head_count(plan, service)
        if missing is None:
            client = plan.client(plan.process_id)
            client.connect()
            _register(client, plan)
            return ProcessGroup(
                client, service, plan.process_id, plan.num_processes, spec.local_device_ids, _own_host(plan)
            )
    raise ProcessError(_missing_message(plan, missing))


def _with_head_count(plan: RendezvousPlan, service: Any) -> list[int] | None:
    """`_wait_for_all`; ProcessError at once where processes were told different numbers of processes."""
    if service is None:
        _compare(plan, 0, number_told(split_address(plan.address), plan.process_id, plan.num_processes))
        return _wait_for_all(plan, service)
    # The others come while this process waits in C++, which nothing interrupts: so that is done in a thread.
    ended: queue.Queue[Callable[[], Any]] = queue.Queue()
    where, number = split_address(plan.bind), plan.num_processes
    count = HeadCount(where, number, lambda *told: ended.put(lambda: _compare(plan, *told)))
    waiting = threading.Thread(target=lambda: ended.put(_outcome(_wait_for_all, plan, service)), daemon=True)
    waiting.start()
    try:
        return ended.get()()
    finally:
        count.stop()


def _outcome(fun: Callable[..., Any], *args: Any) -> Callable[[], Any]:
    """A function that returns what `fun` has returned now, or raises what it has raised."""
    future: Future[Any] = Future()
    try:
        future.set_result(fun(*args))
    except BaseException as error:
        future.set_exception(error)
    return future.result


def _compare(plan: RendezvousPlan, rank: int, number: int | None) -> None:
    """ProcessError if another process was told another number of processes."""
    if number not in (None, plan.num_processes):
        raise ProcessError(
            f"distributed.initialize: this is process {plan.process_id} of {plan.num_processes}, but process {rank} "
            f"was told that there are {number}; give all processes the same num_processes"
        )


def _wait_for_all(plan: RendezvousPlan, service: Any) -> list[int] | None:
    """Wait for all processes: None once all have connected, else the missing ranks as far as they can be determined."""
    first = plan.careful_client(plan.process_id)
    try:
        with announce(f"{_title(plan)} has waited for the others, up to {plan.initialization:g} s,"):
            first.connect()
    except RuntimeError:
        return _missing(plan, service)
    first.shutdown()
    return None


@contextmanager
def _quiet_logs() -> Generator[None]:
    """Suppress XLA's log messages, whose contents the exceptions here repeat, unless the user asked for all logs."""
    quiet()
    tells_all = os.environ["TF_CPP_MIN_LOG_LEVEL"] == "0"
    if not tells_all:
        _jaxlib_utils.absl_set_min_log_level(_FATAL_ONLY)
    try:
        yield
    finally:
        if not tells_all:
            _jaxlib_utils.absl_set_min_log_level(_ERRORS)


def _start(plan: RendezvousPlan) -> Any:
    """Start the coordination service in process 0; wait for it in the others."""
    if plan.process_id:
        _wait_for_coordinator(plan)
        return None
    _check_port(plan.bind)
    return plan.serve()


def _register(client: Any, plan: RendezvousPlan) -> None:
    """Register this rank; ProcessError if another process has registered it."""
    try:
        client.key_value_set(f"xlamini/rank/{plan.process_id}", socket.gethostname())
    except _jax.JaxRuntimeError:
        raise ProcessError(
            f"distributed.initialize: two processes say that they are process {plan.process_id} of "
            f"{plan.num_processes}; give each its own process_id"
        ) from None


def _own_host(plan: RendezvousPlan) -> str:
    """The address of this machine on the coordinator's network."""
    host, port = split_address(plan.address)
    family, _, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as route:
        route.connect(where)
        return route.getsockname()[0]


def _missing(plan: RendezvousPlan, service: Any) -> list[int]:
    try:
        if service is None:
            return missing_from_coordinator(plan.careful_client, plan.process_id)
        service.shutdown()
        again = plan.serve()
        found = missing_seen_by_coordinator(plan.careful_client, plan.num_processes)
        again.shutdown()
        return found
    except RuntimeError:
        return []  # unknown: process 0 is gone, or several processes share a rank


def _missing_message(plan: RendezvousPlan, missing: list[int]) -> str:
    who = f"{numbered(missing)} did not come" if missing else "not all processes came"
    return (
        f"distributed.initialize: {who} within {plan.initialization:g} s; this is process {plan.process_id} of "
        f"{plan.num_processes}, the coordinator is at {plan.address}. Look at the output of the missing, or wait "
        "longer with initialization_timeout"
    )


def _wait_for_coordinator(plan: RendezvousPlan) -> None:
    """Wait until the coordinator's address accepts connections."""
    host, port = split_address(plan.address)
    deadline = time.monotonic() + plan.initialization
    with announce(f"{_title(plan)} has waited for process 0, up to {plan.initialization:g} s,"):
        _connect_to(plan, host, port, deadline)


def _title(plan: RendezvousPlan) -> str:
    return f"process {plan.process_id} of {plan.num_processes}, whose coordinator is at {plan.address},"


def _connect_to(plan: RendezvousPlan, host: str, port: int, deadline: float) -> None:
    while True:
        try:
            socket.create_connection((host, port), timeout=max(0.1, min(5, deadline - time.monotonic()))).close()
            return
        except OSError as error:
            if time.monotonic() >= deadline:
                raise ProcessError(
                    f"distributed.initialize: process 0 did not come within {plan.initialization:g} s: this is process "
                    f"{plan.process_id} of {plan.num_processes}, and {plan.address}, where process 0 should listen, "
                    f"cannot be reached ({error}). Look at the output of process 0, and whether the address is right"
                ) from None
            time.sleep(0.1)


def is_refused(address: str) -> bool:
    """Whether a connection to an address is refused, so nothing listens there."""
    try:
        socket.create_connection(split_address(address), timeout=1).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return False


def _check_port(bind: str) -> None:
    """Raise ProcessError if another program listens on the port: gRPC would share the port with it."""
    host, port = split_address(bind)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            raise ProcessError(
                f"distributed.initialize: process 0 cannot listen at {bind} ({error}); choose another port in "
                "coordinator_address, or another interface with coordinator_bind_address"
            ) from None


def split_address(address: str) -> tuple[str, int]:
    """The host and port of an address; ValueError without a port.

    >>> split_address("[::1]:1234")
    ('::1', 1234)
    """
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isdecimal() and int(port) < 65536):
        raise ValueError(f"distributed.initialize: the address {address!r} must be HOST:PORT, such as '10.0.0.1:1234'")
    return host.strip("[]"), int(port)


def default_bind(address: str) -> str:
    """Where process 0 listens: at no interface that others reach, if the address is this machine's own to itself.

    >>> default_bind("127.0.0.1:1234"), default_bind("10.0.0.1:1234")
    ('127.0.0.1:1234', '[::]:1234')
    """
    host, port = split_address(address)
    if host == "localhost":
        return f"127.0.0.1:{port}" if _resolves_to_ipv4(host) else f"[::1]:{port}"
    try:
        is_own = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_own = False
    return address if is_own else f"[::]:{port}"


def _resolves_to_ipv4(host: str) -> bool:
    return any(family == socket.AF_INET for family, *_ in socket.getaddrinfo(host, None))


def _nothing(*_: Any) -> None:
    """A no-op callback: given one, the client does not abort the process."""
