"""Connecting a process with the others: process 0 starts the coordinator, all connect to it and wait for one another.

PJRT's client ends its process where it cannot connect, unless it is given a function to call instead; the function's
failure becomes an exception here. Once connected it would end the process so too; therefore each connects twice, the
second time without that function: what then goes wrong is found and told by `watching`.
"""
from __future__ import annotations

import math
import os
import socket
import time
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, NamedTuple

from jaxlib import _jax
from jaxlib import utils as _jaxlib_utils

from xlamini.core.errors import ProcessError
from xlamini.runtime.devices.plugins import quiet
from xlamini.runtime.processes.clusters import Seat
from xlamini.runtime.processes.group import Group, numbered
from xlamini.runtime.processes.roll_call import missing_as_told, missing_seen_by_coordinator

_ROLL_CALL = 6.0
"""Seconds of the time-out that are kept for finding out who is missing."""
_ERRORS, _FATAL_ONLY = 2, 3


class Plan(NamedTuple):
    """How a process is to join: where the coordinator is, which process this is, and how long to wait for what."""

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
        return max(1, math.ceil(self.initialization - min(_ROLL_CALL, self.initialization / 2)))

    def serve(self) -> Any:
        """The coordinator; it listens from now on."""
        return _jax.get_distributed_runtime_service(
            self.bind,
            self.num_processes,
            heartbeat_timeout=self.heartbeat,
            cluster_register_timeout=self.patience,
            shutdown_timeout=self.shutdown,
            recoverable=True,  # else it ends all processes by a crash when one dies
        )

    def client(self, process_id: int, patience: int | None = None, **more: Any) -> Any:
        """A client that is not connected yet."""
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
        """A client for connecting: where that fails, it raises."""
        return self.client(process_id, missed_heartbeat_callback=_nothing)


def join(plan: Plan, seat: Seat) -> Group:
    """Connect this process; ProcessError, with the numbers of those who are missing, if not all come in time."""
    with _silent():
        service = _start(plan)
        missing = _connected(plan, service)
        if missing is None:
            client = plan.client(plan.process_id)
            client.connect()
            _sit_down(client, plan)
            return Group(client, service, plan.process_id, plan.num_processes, seat.local_device_ids, _own_host(plan))
    raise ProcessError(_who_did_not_come(plan, missing))


def _connected(plan: Plan, service: Any) -> list[int] | None:
    """None once all have come; else those who have not, as far as they are known."""
    first = plan.careful_client(plan.process_id)
    try:
        first.connect()
    except RuntimeError:
        return _missing(plan, service)
    first.shutdown()
    return None


@contextmanager
def _silent() -> Generator[None]:
    """Keep XLA from telling of what is told in better words here, unless it was asked to tell all."""
    quiet()
    tells_all = os.environ["TF_CPP_MIN_LOG_LEVEL"] == "0"
    if not tells_all:
        _jaxlib_utils.absl_set_min_log_level(_FATAL_ONLY)
    try:
        yield
    finally:
        if not tells_all:
            _jaxlib_utils.absl_set_min_log_level(_ERRORS)


def _start(plan: Plan) -> Any:
    """In process 0 the coordinator, started; in the others wait until it is there."""
    if plan.process_id:
        _wait_for_coordinator(plan)
        return None
    _check_port(plan.bind)
    return plan.serve()


def _sit_down(client: Any, plan: Plan) -> None:
    """ProcessError if another process says that it is the same one."""
    try:
        client.key_value_set(f"xlamini/seat/{plan.process_id}", socket.gethostname())
    except _jax.JaxRuntimeError:
        raise ProcessError(
            f"distributed.initialize: two processes say that they are process {plan.process_id} of "
            f"{plan.num_processes}; give each its own process_id"
        ) from None


def _own_host(plan: Plan) -> str:
    """The address of this machine on the network where the coordinator is."""
    host, port = split_address(plan.address)
    family, _, _, _, where = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, socket.SOCK_DGRAM) as route:
        route.connect(where)
        return route.getsockname()[0]


def _missing(plan: Plan, service: Any) -> list[int]:
    try:
        if service is None:
            return missing_as_told(plan.careful_client, plan.process_id)
        service.shutdown()
        again = plan.serve()
        found = missing_seen_by_coordinator(plan.careful_client, plan.num_processes)
        again.shutdown()
        return found
    except RuntimeError:
        return []  # who is missing cannot be found out: process 0 has gone, or several try


def _who_did_not_come(plan: Plan, missing: list[int]) -> str:
    who = f"{numbered(missing)} did not come" if missing else "not all processes came"
    return (
        f"distributed.initialize: {who} within {plan.initialization:g} s; this is process {plan.process_id} of "
        f"{plan.num_processes}, the coordinator is at {plan.address}. Look at the output of the missing, or wait "
        "longer with initialization_timeout"
    )


def _wait_for_coordinator(plan: Plan) -> None:
    """Wait until something listens where process 0 should."""
    host, port = split_address(plan.address)
    deadline = time.monotonic() + plan.initialization
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
    """Whether a machine answers that nothing listens at an address."""
    try:
        socket.create_connection(split_address(address), timeout=1).close()
    except ConnectionRefusedError:
        return True
    except OSError:
        return False
    return False


def _check_port(bind: str) -> None:
    """ProcessError if another program listens there already: gRPC would share the port with it."""
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
    """Host and port; ValueError for an address that has no port.

    >>> split_address("[::1]:1234")
    ('::1', 1234)
    """
    host, colon, port = address.rpartition(":")
    if not (colon and host and port.isdecimal() and int(port) < 65536):
        raise ValueError(f"distributed.initialize: the address {address!r} must be HOST:PORT, such as '10.0.0.1:1234'")
    return host.strip("[]"), int(port)


def _nothing(*_: Any) -> None:
    """Called by the client instead of ending the process."""
