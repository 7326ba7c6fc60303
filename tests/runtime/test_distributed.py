"""What starting processes together takes from the environment and refuses; no process is started here."""
from __future__ import annotations

import os
import socket
import subprocess
import sys

import numpy as np
import pytest

import xlamini
from xlamini import distributed, launch, multihost
from xlamini.core.errors import ProcessError
from xlamini.runtime.processes import agreement, group
from xlamini.runtime.processes.clusters import ProcessSpec, detect, first_host, port_of
from xlamini.runtime.processes.rendezvous import RendezvousPlan, split_address

SLURM = {
    "SLURM_JOB_ID": "123456",
    "SLURM_STEP_NODELIST": "gpu[007-009,12],login1",
    "SLURM_STEP_NUM_TASKS": "8",
    "SLURM_NTASKS": "16",
    "SLURM_PROCID": "5",
    "SLURM_LOCALID": "1",
}
OPEN_MPI = {
    "OMPI_MCA_orte_hnp_uri": "1531576320.0;tcp://10.96.0.1,10.148.0.1:34911",
    "OMPI_MCA_ess_base_jobid": "1531576320",
    "OMPI_COMM_WORLD_SIZE": "4",
    "OMPI_COMM_WORLD_RANK": "2",
    "OMPI_COMM_WORLD_LOCAL_RANK": "0",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
}
KUBERNETES = {
    "KUBERNETES_SERVICE_HOST": "10.0.0.1",
    "JOB_COMPLETION_INDEX": "3",
    "HOSTNAME": "train-big-3",
    "XLAMINI_NUM_PROCESSES": "4",
}
TPU = {"TPU_WORKER_ID": "1", "TPU_WORKER_HOSTNAMES": "w0,w1,w2,w3"}
SLICES = {"MEGASCALE_NUM_SLICES": "2", "MEGASCALE_SLICE_ID": "1", "MEGASCALE_COORDINATOR_ADDRESS": "s0:8080"}
LAUNCHER = {"XLAMINI_COORDINATOR_ADDRESS": "h:1", "XLAMINI_NUM_PROCESSES": "2", "XLAMINI_PROCESS_ID": "1"}

FOUND = [
    ({}, None, ProcessSpec()),
    (LAUNCHER, "launcher", ProcessSpec("h:1", 2, 1)),
    ({**SLURM, **LAUNCHER}, "launcher", ProcessSpec("h:1", 2, 1)),
    (SLURM, "slurm", ProcessSpec(f"gpu007:{61440 + 123456 % 4096}", 8, 5, (1,))),
    (OPEN_MPI, "ompi", ProcessSpec(f"10.96.0.1:{61440 + 1531576320 % 4096}", 4, 2, (0,))),
    (KUBERNETES, "k8s", ProcessSpec("train-big-0.train-big:8476", 4, 3)),
    (TPU, "cloud_tpu", ProcessSpec("w0:8476", 4, 1)),
    ({**TPU, **SLICES}, "cloud_tpu", ProcessSpec("s0:8476", 8, 5)),
]


@pytest.mark.parametrize(("environment", "method", "seat"), FOUND)
def test_what_schedulers_say(environment: dict, method: str | None, seat: ProcessSpec) -> None:
    assert detect(environment) == (method, seat)


def test_one_scheduler_can_be_asked_or_none() -> None:
    assert detect({**SLURM, **TPU}, "cloud_tpu")[0] == "cloud_tpu"
    assert detect(SLURM, "ompi") == (None, ProcessSpec())
    assert detect(SLURM, "deactivate") == (None, ProcessSpec())
    with pytest.raises(ValueError, match=r"cluster_detection_method='slrum' is not known; it is one of 'launcher'"):
        detect(SLURM, "slrum")


@pytest.mark.parametrize("missing", ["SLURM_STEP_NODELIST", "SLURM_PROCID"])
def test_a_shell_in_a_slurm_job_is_no_task(missing: str) -> None:
    assert detect({k: v for k, v in SLURM.items() if k != missing}) == (None, ProcessSpec())


def test_open_mpi_without_an_address() -> None:
    """Version 5 does not tell it: it is known only where all processes are on one machine."""
    newer = {k: v for k, v in OPEN_MPI.items() if "MCA" not in k} | {"PMIX_NAMESPACE": "prterun-host-77@1"}
    assert detect(newer)[1].coordinator_address is None
    alone = detect({**newer, "OMPI_COMM_WORLD_LOCAL_SIZE": "4"})[1]
    assert alone.coordinator_address == f"127.0.0.1:{port_of('prterun-host-77@1')}"


def test_numbers_in_the_environment_are_checked() -> None:
    with pytest.raises(ValueError, match="the environment variable SLURM_PROCID='first' is no number"):
        detect({**SLURM, "SLURM_PROCID": "first"})


@pytest.mark.parametrize(
    ("nodes", "first"),
    [("a", "a"), ("a,b", "a"), ("n[3,5-7],m", "n3"), ("n[01-02]-ib,m[1]", "n01-ib"), ("r[1-2]n[4-9]", "r1n4")],
)
def test_first_host(nodes: str, first: str) -> None:
    assert first_host(nodes) == first


@pytest.mark.parametrize("address", ["host", ":80", "host:", "host:http", "host:70000"])
def test_addresses_without_host_or_port(address: str) -> None:
    with pytest.raises(ValueError, match=r"must be HOST:PORT, such as '10\.0\.0\.1:1234'"):
        split_address(address)


def test_some_of_the_timeout_is_kept_to_find_out_who_is_missing() -> None:
    plans = [RendezvousPlan("h:1", "h:1", 0, 2, seconds, 20, 300).patience for seconds in (300, 8, 1)]
    assert plans == [294, 4, 1]


def alone(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("XLAMINI_", "SLURM_", "OMPI_"))}
    root = os.path.dirname(os.path.dirname(xlamini.__file__))
    env = {**clean, "PYTHONPATH": root, "XLAMINI_PLATFORMS": "cpu", **environment}
    return subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, timeout=60)


@pytest.mark.full
def test_what_initialize_refuses() -> None:
    code = """
import xlamini
def attempt(**given):
    try:
        xlamini.distributed.initialize(**given)
    except (RuntimeError, TypeError, ValueError) as error:
        print(type(error).__name__, error)
attempt()
attempt(coordinator_address="h:1", num_processes=2)
attempt(coordinator_address="h", num_processes=2, process_id=0)
attempt(coordinator_address="h:1", num_processes=2, process_id=2)
attempt(coordinator_address="h:1", num_processes="2", process_id=0)
attempt(coordinator_address="h:1", num_processes=2, process_id=0, cluster_detection_method="slrum")
xlamini.numpy.ones(1)
attempt(coordinator_address="h:1", num_processes=2, process_id=0)
"""
    lines = alone(code).stdout.splitlines()
    expected = [
        "ValueError distributed.initialize: coordinator_address is not given, and no scheduler that xlamini knows",
        "ValueError distributed.initialize: process_id is not given, and no scheduler",
        "ValueError distributed.initialize: the address 'h' must be HOST:PORT",
        "ValueError distributed.initialize: process_id=2 must be at least 0 and below num_processes=2",
        "TypeError distributed.initialize: num_processes must be an int, got '2'",
        "ValueError distributed.initialize: cluster_detection_method='slrum' is not known",
        "RuntimeError distributed.initialize was called after devices had been used (cpu): call it before",
    ]
    assert [line[: len(text)] for line, text in zip(lines, expected, strict=True)] == expected


@pytest.mark.full
def test_one_process_alone() -> None:
    """It computes as always, and says so in a line that a flag switches off."""
    code = """
import xlamini
from xlamini import distributed, multihost
distributed.initialize()
assert distributed.is_initialized() and xlamini.process_count() == 1
multihost.sync_global_devices("here")
assert multihost.process_allgather(3).tolist() == [3]
assert xlamini.numpy.ones(3).sum() == 3
try:
    distributed.initialize()
except RuntimeError as error:
    print(error)
distributed.shutdown()
assert not distributed.is_initialized()
"""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    where = {"XLAMINI_COORDINATOR_ADDRESS": address, "XLAMINI_NUM_PROCESSES": "1", "XLAMINI_PROCESS_ID": "0"}
    ended = alone(code, **where)
    assert ended.stdout == "distributed.initialize has been called before; call it once, at the start of the program\n"
    said = f"xlamini: 1 process computes; process 0 coordinates, at {address}, as launcher says\n"
    assert (ended.returncode, ended.stderr) == (0, said)
    assert alone(code, **where, XLAMINI_PRINT_START="0").stderr == ""


def test_without_initialize_this_is_one_process() -> None:
    assert not distributed.is_initialized()
    distributed.shutdown()
    multihost.sync_global_devices("nothing to wait for")
    x = {"a": np.arange(6.0).reshape(2, 3), "b": 4}
    multihost.assert_equal(x)
    given = multihost.broadcast_one_to_all(x)
    assert given["a"].tolist() == x["a"].tolist()
    assert multihost.process_allgather(x)["a"].shape == (1, 2, 3)
    assert multihost.process_allgather(x, tiled=True)["a"].shape == (2, 3)
    with pytest.raises(ValueError, match="exactly one process must be the source, but is_source is true in 0"):
        multihost.broadcast_one_to_all(x, is_source=False)


def test_the_place_where_jax_has_the_helpers() -> None:
    from xlamini.experimental import multihost_utils

    assert [getattr(multihost_utils, name) for name in multihost.__all__] == [
        getattr(multihost, name) for name in multihost.__all__
    ]


def test_processes_in_different_places() -> None:
    group._check_same("a", {0: "a", 1: "a"})
    with pytest.raises(ProcessError, match="process 0 is at a; process 1 is at b"):
        group._check_same("a", {0: "a", 1: "b"})


def test_how_programs_differ() -> None:
    run = agreement._AgreementRun
    runs = {0: run("f", "1", "a.py:1"), 1: run("f", "1", "a.py:1"), 2: run("g", "2", "a.py:2")}
    text = agreement._difference(runs, {0: [["sin", "a.py:3"]], 1: [["sin", "a.py:3"]], 2: []})
    assert "processes 0, 1 f (called at a.py:1), process 2 g (called at a.py:2)" in text
    assert "They differ first in 'sin' at a.py:3 of process 0, the end of process 2" in text
    same = agreement._difference(runs, {0: [], 1: [], 2: []})
    assert "Their operations are the same; shardings, donation or options differ" in same


def test_launcher_wants_processes(capsys: pytest.CaptureFixture[str]) -> None:
    assert launch.main(["-n", "0", "script.py"]) == 2
    assert "-n must be at least 1" in capsys.readouterr().err
