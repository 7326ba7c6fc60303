"""The programs of the inspector's tests, compiled for a TPU and a GPU that are not here."""
from __future__ import annotations

import pytest

from tests.aot.conftest import target_or_skip
from tests.inspection.xla.bars import check
from tests.support import inspected_programs as programs
from xlamini.inspection.xla.examine import examine
from xlamini.inspection.xla.facts import Examined
from xlamini.inspection.xla.kernels import BOUND, PREDICTED
from xlamini.runtime.targets.topology import Target


def check_platform(found: Examined) -> None:
    times = {kernel.time for kernel in found.kernels}
    if found.platform == "tpu":
        assert set(found.unavailable) == {"reasons", "assembly"} and PREDICTED in times
        return
    assert found.unavailable == {} and times == {BOUND}
    assert any(boundary.reason for boundary in found.boundaries)
    assert found.assembly is not None and any(".visible .entry" in line for line in found.assembly.lines)


@pytest.mark.full
@pytest.mark.parametrize("name", ["mlp", "conv", "rnn", pytest.param("transformer", marks=pytest.mark.slow)])
def test_programs(name: str, target: Target) -> None:
    found = examine(getattr(programs, name)(), target.name, target)
    check(found)
    check_platform(found)
    assert found.memory is not None and found.memory.capacity == target.memory


@pytest.mark.full
@pytest.mark.parametrize("spec", ["tpu:v5e:2x4", "gpu:h200:8"])
def test_a_sharded_step(spec: str) -> None:
    target = target_or_skip(spec)
    found = examine(programs.sharded(target.devices), spec, target)
    entry = check(found)
    check_platform(found)
    assert entry["devices"] == 8
    assert entry["collectives"] and all(each["row"] is not None for each in entry["collectives"])


@pytest.mark.full
def test_flops_are_those_of_the_tpus_compiler(tpu: Target) -> None:
    program = programs.mlp()
    cost = examine(program, "v5e", tpu).cost
    assert cost is not None
    assert cost.flops == pytest.approx(program.compile(target=tpu).cost_analysis("xla")["flops"], rel=0.01)
