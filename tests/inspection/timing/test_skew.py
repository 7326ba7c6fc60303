"""Several devices and processes: how busy each is, when it arrives at collectives, and who waits for whom."""
from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import xlamini
from tests.inspection.timing.planes import Event, Planes, recording, xspace
from xlamini import lax, numpy as jnp, profiler
from xlamini.inspection.timing.arrivals import groups
from xlamini.inspection.timing.report import TimeReport
from xlamini.inspection.timing.trace.files import Recording
from xlamini.sharding import PartitionSpec as P

SLOW = 5
SCRIPT = """
import jax, jax.numpy as jnp
mesh = jax.make_mesh((jax.device_count(),), ("d",))
f = jax.jit(jax.shard_map(lambda x: jax.lax.psum(x @ x.T, "d"), mesh=mesh, in_specs=jax.P("d"), out_specs=jax.P()))
for _ in range(3):
    f(jnp.ones((32, 64))).block_until_ready()
"""


def sum_of_loop(x: Any, count: Any) -> Any:
    """The sum over the devices of what a loop of as many steps gives."""
    y = lax.while_loop(lambda s: s[0] < count, lambda s: (s[0] + 1, jnp.tanh(s[1] @ s[1])), (0 * count, x))[1]
    return lax.psum(y.sum(), "d")


def uneven(x: Any) -> Any:
    """A loop with more steps on one device."""
    return sum_of_loop(x, jnp.where(lax.axis_index("d") == SLOW, 100, 1))


@pytest.fixture(scope="module")
def session() -> profiler.ProfileSession:
    mesh = xlamini.make_mesh((8,), ("d",))
    f = xlamini.jit(xlamini.shard_map(uneven, mesh=mesh, in_specs=P("d"), out_specs=P(), check_vma=False))
    x = jnp.ones((8 * 256, 256))
    f(x).block_until_ready()
    with profiler.trace() as found:
        for _ in range(3):
            f(x).block_until_ready()
    return found


def test_the_others_wait_for_the_slow_device(session: profiler.ProfileSession) -> None:
    skew = session.skew()
    (row,) = skew.rows
    assert row.place.rpartition(":")[0] == __file__
    assert (row.runs, row.last) == (3, f"device {SLOW}")
    waits = {wait.device: wait for wait in skew.devices}
    assert waits[f"device {SLOW}"].last == 3
    assert waits[f"device {SLOW}"].held_up == pytest.approx(sum(wait.waited for wait in skew.devices))
    assert all(skew.pairs[f"device {d}", f"device {SLOW}"] > 0 for d in range(8) if d != SLOW)

    assert f"for device {SLOW}, the last in 3 runs; " in str(skew)


def test_a_row_for_each_device(session: profiler.ProfileSession) -> None:
    table = session.table(by="device")
    assert [(row.name, row.calls) for row in table.rows] == [(f"device {d}", 3) for d in range(8)]
    assert all(0 < row.share <= 1 and row.seconds <= table.span for row in table.rows)
    assert all("; while busy, waited " in row.detail for row in table.rows)


def tpu(program: int, begin: int, step: int, run: int, work: int) -> dict[str, list[Event]]:
    """Three calls of a TPU, one in each `step`, that work and then meet another at 5,000; times are in nanoseconds."""
    calls = [(f"jit_step({program})", begin + step * i, 6000, {"run_id": run + i}) for i in range(3)]
    ops: list[Event] = []
    for i in range(3):
        start = begin + step * i
        ops.append(("%fusion.1 = f32[8]{0} fusion(%p)", start, work, {}))
        ops.append(("%all-reduce.2 = f32[8]{0} all-reduce(%fusion.1), channel_id=1", start + work, 5500 - work, {}))
    return {"XLA Modules": calls, "XLA Ops": ops}


def two_hosts() -> tuple[Planes, Planes]:
    """The second host's clock is 700,000 ns ahead, its recording begins 100,000 ns later, and its device is slow."""
    first: Planes = {f"/device:TPU:{d}": tpu(77, 200_000, 10_000, 5, 1000 * (d + 1)) for d in range(2)}
    second: Planes = {"/device:TPU:0": tpu(77, 100_000, 10_000, 5, 5000)}
    return first, second


def test_two_hosts_with_clocks_of_their_own(tmp_path: Path) -> None:
    for name, planes, begin in zip("ab", two_hosts(), (10**18, 10**18 + 800_000), strict=True):
        (tmp_path / f"{name}.xplane.pb").write_bytes(xspace(planes, begin))
    report = profiler.read_trace(tmp_path)
    devices = ["a /device:TPU:0", "a /device:TPU:1", "b /device:TPU:0"]
    assert [(row.name, row.calls) for row in report.table(by="device").rows] == [(device, 3) for device in devices]
    skew = report.skew()
    assert [(row.name, row.runs, row.last) for row in skew.rows] == [("all-reduce.2 of jit_step", 3, devices[2])]
    assert skew.rows[0].seconds == pytest.approx(3 * 4000e-9)
    assert skew.pairs == {(devices[0], devices[2]): pytest.approx(12e-6), (devices[1], devices[2]): pytest.approx(9e-6)}
    assert report.table().rows[0].calls == 3
    assert str(report).count("b /device:TPU:0") >= 3


def test_an_asynchronous_collective_waits_in_its_end() -> None:
    """Work goes on beside it: only what its end lasts is a wait."""
    planes: Planes = {
        f"/device:TPU:{d}": {
            "XLA Modules": [("jit_step(7)", 0, 9000, {"run_id": 1})],
            "XLA Ops": [
                ("%all-reduce-start.1 = f32[8]{0} all-reduce-start(%p)", start, 10, {}),
                ("%all-reduce-done.1 = f32[8]{0} all-reduce-done(%all-reduce-start.1)", done, 6000 - done, {}),
            ],
        }
        for d, (start, done) in enumerate([(1000, 4500), (5000, 5800)])
    }
    skew = TimeReport([Recording("", recording(planes))]).skew()
    assert skew.rows[0].seconds == pytest.approx(4000e-9)
    assert skew.pairs == {("/device:TPU:0", "/device:TPU:1"): pytest.approx(500e-9)}


@pytest.mark.parametrize(("attributes", "expected"), [
    ("channel_id=1, replica_groups={{0,1},{2,3}}, use_global_device_ids=true", ["ab", "cd"]),
    ("replica_groups=[2,2]<=[4], to_apply=%add", ["ab", "cd"]),
    ("replica_groups=[2,2]<=[2,2]T(1,0)", ["ac", "bd"]),
    ("source_target_pairs={{0,1},{1,0},{2,3},{3,2}}", ["ab", "cd"]),
    ("replica_groups={}", ["abcd"]),
    ("replica_groups={{0,1},{2,9}}", ["abcd"]),
    ("replica_groups=[4,2]<=[8]", ["abcd"]),
    ("replica_groups=[2,2]<=[2,2]T(1,1)", ["abcd"]),
])  # fmt: skip
def test_groups_of_devices(attributes: str, expected: list[str]) -> None:
    assert ["".join(group) for group in groups(attributes, list("abcd"))] == expected


def test_devices_of_other_groups_do_not_wait() -> None:
    """Eight devices in two groups: the slow one holds up its neighbour alone."""
    mesh = xlamini.make_mesh((2, 4), ("a", "d"))

    def f(x: Any) -> Any:
        slow = (lax.axis_index("a") == 1) & (lax.axis_index("d") == 1)
        return sum_of_loop(x, jnp.where(slow, 100, 1))[None]

    step = xlamini.jit(xlamini.shard_map(f, mesh=mesh, in_specs=P(("a", "d")), out_specs=P("a"), check_vma=False))
    x = jnp.ones((8 * 256, 256))
    step(x).block_until_ready()
    with profiler.trace() as session:
        step(x).block_until_ready()
    skew = session.skew()
    assert {early for early, late in skew.pairs if late == f"device {SLOW}"} == {"device 4", "device 6", "device 7"}


@pytest.mark.full
def test_the_report_of_a_script_has_the_devices(tmp_path: Path) -> None:
    """Where there are several."""
    (tmp_path / "train.py").write_text(SCRIPT)
    command = [sys.executable, "-m", "xlamini", "profile", str(tmp_path / "train.py")]
    for devices, lines in ((4, 4), (1, 0)):
        environment = {**os.environ, "XLAMINI_NUM_CPU_DEVICES": str(devices), "XLA_FLAGS": ""}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
        assert len(re.findall(r" device \d  idle .*; while busy, waited ", done.stderr)) == lines
        assert bool(re.search(r"The others waited .* for device \d, the last in \d runs; ", done.stderr)) == bool(lines)


def test_one_device_has_no_skew() -> None:
    with profiler.trace() as session:
        xlamini.jit(lambda x: x @ x)(jnp.ones((8, 8))).block_until_ready()
    assert str(session.skew()) == "The trace has no collective of several devices."
    assert (session.skew().rows, session.skew().devices, session.skew().pairs) == ([], [], {})
    with pytest.raises(RuntimeError, match="skew: the session has recorded nothing yet; ask after its end"):
        profiler.ProfileSession().skew()
