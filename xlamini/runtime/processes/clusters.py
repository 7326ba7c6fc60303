"""Cluster detection: the process's rank, read from the environment variables of its scheduler.

Each function reads the variables of one scheduler; it returns None if that scheduler did not start this process, and
fields that the scheduler does not set are None.
"""
from __future__ import annotations

import re
import zlib
from collections.abc import Callable, Mapping
from typing import NamedTuple

Environment = Mapping[str, str]

PORT = 8476
"""The coordinator's port where the scheduler has no job number to derive one from."""


class ProcessSpec(NamedTuple):
    """A process's rank, the number of processes, the coordinator's address, and the devices it uses."""

    coordinator_address: str | None = None
    num_processes: int | None = None
    process_id: int | None = None
    local_device_ids: tuple[int, ...] | None = None


def launcher(env: Environment) -> ProcessSpec | None:
    """The variables that `python -m xlamini.launch` sets: XLAMINI_COORDINATOR_ADDRESS, _NUM_PROCESSES, _PROCESS_ID."""
    if "XLAMINI_COORDINATOR_ADDRESS" not in env:
        return None
    return ProcessSpec(
        env["XLAMINI_COORDINATOR_ADDRESS"], _number(env, "XLAMINI_NUM_PROCESSES"), _number(env, "XLAMINI_PROCESS_ID")
    )


def slurm(env: Environment) -> ProcessSpec | None:
    """A step of a SLURM job, started by `srun`; each task of a node takes one GPU."""
    nodes = env.get("SLURM_STEP_NODELIST") or env.get("SLURM_NODELIST")
    if nodes is None or "SLURM_PROCID" not in env:
        return None
    tasks = _number(env, "SLURM_STEP_NUM_TASKS") or _number(env, "SLURM_NTASKS")
    port = port_of(env.get("SLURM_JOB_ID", ""))
    rank, devices = _number(env, "SLURM_PROCID"), _device_ids(env, "SLURM_LOCALID")
    return ProcessSpec(f"{first_host(nodes)}:{port}", tasks, rank, devices)


def open_mpi(env: Environment) -> ProcessSpec | None:
    """A process started by Open MPI's `mpirun`; without an address from Open MPI, all must be on one machine."""
    if "OMPI_COMM_WORLD_RANK" not in env:
        return None
    size, here = _number(env, "OMPI_COMM_WORLD_SIZE"), _number(env, "OMPI_COMM_WORLD_LOCAL_SIZE")
    found = re.search(r"tcp://\[?([^,:;\]]+)", env.get("OMPI_MCA_orte_hnp_uri", ""))
    host = found[1] if found else "127.0.0.1" if size == here else None
    job = env.get("OMPI_MCA_ess_base_jobid") or env.get("PMIX_NAMESPACE", "")
    address = f"{host}:{port_of(job)}" if host else None
    rank, devices = _number(env, "OMPI_COMM_WORLD_RANK"), _device_ids(env, "OMPI_COMM_WORLD_LOCAL_RANK")
    return ProcessSpec(address, size, rank, devices)


def kubernetes(env: Environment) -> ProcessSpec | None:
    """A pod of an Indexed Job, whose pods' names end with their indices.

    The headless service must have the Job's name. Kubernetes does not tell a pod the number of pods.
    """
    if "KUBERNETES_SERVICE_HOST" not in env or "JOB_COMPLETION_INDEX" not in env:
        return None
    index = _number(env, "JOB_COMPLETION_INDEX")
    job, dash, last = env.get("HOSTNAME", "").rpartition("-")
    address = f"{job}-0.{job}:{PORT}" if dash and last == str(index) else None
    return ProcessSpec(address, _number(env, "XLAMINI_NUM_PROCESSES"), index)


def cloud_tpu(env: Environment) -> ProcessSpec | None:
    """A worker of a Cloud TPU slice, or of a multislice job."""
    worker = _number(env, "TPU_WORKER_ID")
    hosts = [host for host in env.get("TPU_WORKER_HOSTNAMES", "").split(",") if host]
    if worker is None or not hosts:
        return None
    slices, this = _number(env, "MEGASCALE_NUM_SLICES") or 1, _number(env, "MEGASCALE_SLICE_ID") or 0
    first = env.get("MEGASCALE_COORDINATOR_ADDRESS", "").partition(":")[0] if slices > 1 else hosts[0]
    return ProcessSpec(f"{first}:{PORT}" if first else None, slices * len(hosts), this * len(hosts) + worker)


SCHEDULERS: dict[str, Callable[[Environment], ProcessSpec | None]] = {
    "launcher": launcher,
    "slurm": slurm,
    "ompi": open_mpi,
    "k8s": kubernetes,
    "cloud_tpu": cloud_tpu,
}
"""The detection methods, in order of precedence. The names are JAX's where JAX has the method."""


def detect(env: Environment, method: str | None = None) -> tuple[str | None, ProcessSpec]:
    """The scheduler that started this process, and the fields it sets; ValueError for an unknown method.

    >>> detect({"XLAMINI_COORDINATOR_ADDRESS": "10.0.0.1:1234", "XLAMINI_NUM_PROCESSES": "2"})[1].num_processes
    2
    """
    if method == "deactivate":
        return None, ProcessSpec()
    if method is not None and method not in SCHEDULERS:
        raise ValueError(
            f"distributed.initialize: cluster_detection_method={method!r} is not known; it is one of "
            f"{', '.join(map(repr, SCHEDULERS))}, or 'deactivate'"
        )
    for name in [method] if method else SCHEDULERS:
        spec = SCHEDULERS[name](env)
        if spec is not None:
            return name, spec
    return None, ProcessSpec()


def first_host(nodes: str) -> str:
    """The first host of a SLURM node list.

    >>> first_host("gpu[007-009,12]-a,other")
    'gpu007-a'
    """
    first = re.split(r",(?![^\[]*\])", nodes)[0]
    return re.sub(r"\[(\w+)[^\]]*\]", r"\1", first)


def port_of(job: str) -> int:
    """A port derived from the job's number: equal in all its processes, rarely that of another job on the host."""
    digits = re.sub(r"\D", "", job)
    number = int(digits) if digits and len(digits) == len(job) else zlib.crc32(job.encode())
    return 61440 + number % 4096


def _number(env: Environment, variable: str) -> int | None:
    text = env.get(variable)
    if text is None:
        return None
    if not text.strip().isdecimal():
        raise ValueError(f"distributed.initialize: the environment variable {variable}={text!r} is no number")
    return int(text)


def _device_ids(env: Environment, variable: str) -> tuple[int, ...] | None:
    number = _number(env, variable)
    return None if number is None else (number,)
