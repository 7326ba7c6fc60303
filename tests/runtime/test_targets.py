"""What of targets needs no accelerator's compiler: which there are, their descriptions, and how cost is counted.

Specs that there are not stand in tests/errors/targets.py; what compilers are needed for in tests/aot.
"""
from __future__ import annotations

import importlib
import math
import re

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import lax
from xlamini.errors import DeviceNotHereError, PlatformError, TargetError
from xlamini.runtime.devices import plugins
from xlamini.runtime.hlo.cycle_estimate import estimated_cycles
from xlamini.runtime.targets import gpu_targets, tpu_chips

targets = importlib.import_module("xlamini.runtime.targets.topology")


def test_gpus_are_described_as_xla_wants_them() -> None:
    assert {"a100", "h100", "h200", "b200", "l4", "t4", "rtx4090"} <= set(gpu_targets.names())
    fields = [re.findall(r"^ *(\w+):", gpu_targets.read(name).config, re.MULTILINE) for name in gpu_targets.names()]
    assert all(each == fields[0] for each in fields)


@pytest.mark.parametrize("name", gpu_targets.names())
def test_a_gpu_s_description_holds_together(name: str) -> None:
    gpu = gpu_targets.read(name)
    assert gpu.kind.startswith(("NVIDIA ", "Tesla "))
    assert 15e9 < gpu.memory < 200e9
    assert 3e11 <= gpu.bandwidth <= 8e12
    assert gpu.peaks["float16"] > gpu.peaks["float32"] > gpu.peaks["float64"] > 1e11
    numbers = {key: float(value) for key, value in re.findall(r"^ *(\w+): ([\d.]+)", gpu.config, re.MULTILINE)}
    # Each core multiplies and adds once a cycle: what data sheets give without tensor cores, which are faster.
    plain = 2 * numbers["core_count"] * numbers["fpus_per_core"] * numbers["clock_rate_ghz"] * 1e9
    assert plain <= 1.05 * gpu.peaks["float32"]
    assert numbers["shared_memory_per_block_optin"] <= numbers["shared_memory_per_core"]


@pytest.mark.parametrize("chip", tpu_chips.CHIPS.values(), ids=lambda chip: chip.name)
def test_slices_of_a_chip(chip: tpu_chips.Chip) -> None:
    slices = tpu_chips.slices(chip)
    assert all(len(sides) == chip.rank for sides in slices)
    assert len(slices) == len(set(slices))
    assert any(math.prod(sides) == 256 for sides in slices)
    assert max(map(math.prod, slices)) <= chip.largest
    assert all(tpu_chips.nearest(chip, sides) == sides for sides in slices)


def test_the_nearest_slice() -> None:
    v5e, v5p = tpu_chips.CHIPS["v5e"], tpu_chips.CHIPS["v5p"]
    assert tpu_chips.nearest(v5e, (4, 2)) == (2, 4)
    assert tpu_chips.nearest(v5e, (16, 8)) == (8, 16)
    assert tpu_chips.nearest(v5p, (4, 4)) == (2, 2, 4)
    assert tpu_chips.nearest(v5p, (4, 4, 5)) == (4, 4, 4)


def test_a_compiler_that_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plugins, "candidates", lambda name: iter(()))
    monkeypatch.setattr(plugins, "_loaded", {})
    targets._tpu_target.cache_clear()
    targets._gpu_target.cache_clear()
    with pytest.raises(PlatformError, match="pip install libtpu"):
        xlamini.target("tpu:v5e:2x2")
    with pytest.raises(PlatformError, match=r"pip install .*jax-cuda13-pjrt"):
        xlamini.target("gpu:h100")


def test_errors_of_targets_are_of_the_usual_kinds() -> None:
    assert issubclass(TargetError, ValueError)
    assert issubclass(DeviceNotHereError, RuntimeError)


def test_cost_says_whose_it_is() -> None:
    compiled = xlamini.jit(lambda x: x @ x).lower(np.ones((8, 8), np.float32)).compile()
    ours = compiled.cost_analysis("xlamini")
    assert compiled.cost_analysis().source == compiled.cost_analysis("xla").source == "xla"
    assert (ours.source, ours) == ("xlamini", {"flops": 2.0 * 8**3, "bytes accessed": 3.0 * 8 * 8 * 4})


def test_our_count_takes_every_step_of_a_scan_and_nothing_that_is_not_needed() -> None:
    def steps(x):
        x @ x
        return lax.fori_loop(0, 100, lambda i, y: y @ x, x)

    compiled = xlamini.jit(steps).lower(np.ones((8, 8), np.float32)).compile()
    assert 100 * 2 * 8**3 <= compiled.cost_analysis("xlamini")["flops"] < 101 * 2 * 8**3
    assert compiled.cost_analysis("xla")["flops"] < 10 * 2 * 8**3


def test_our_count_of_random_keys() -> None:
    compiled = xlamini.jit(xlamini.random.normal).lower(xlamini.random.key(0)).compile()
    assert compiled.cost_analysis("xlamini")["flops"] > 0


def test_no_prediction_for_what_runs_here() -> None:
    assert xlamini.jit(jnp.sin).lower(1.0).compile().prediction() is None


HLO = """
%body (p: s32[]) -> s32[] {
  %a = s32[] add(%p, %p), backend_config={"estimated_cycles":"10"}
}

%twice (p: s32[]) -> s32[] {
  ROOT %b = s32[] add(%p, %p), backend_config={"estimated_cycles":"7"}
}

%counts (p: s32[]) -> pred[] {
  %n = s32[]{:T(128)} constant(100)
  ROOT %c = pred[] compare(%p, %n), direction=LT
}

%unknown (p: s32[]) -> pred[] {
  ROOT %c = pred[] compare(%p, %p), direction=LT
}

%hundreds (s: (f32[], s32[])) -> (f32[], s32[]) {
  %s = (f32[], s32[]{:T(128)}) parameter(0)
  %hundred = s32[]{:T(128)} constant(100)
  %i = s32[]{:T(128)} get-tuple-element(%s), index=1
  %e = f32[] get-tuple-element(%s), index=0, backend_config={"estimated_cycles":"3"}
  %next = s32[]{:T(128)} add(%hundred, %i)
  ROOT %t = (f32[], s32[]{:T(128)}) tuple(%e, %next)
}

%below (s: (f32[], s32[])) -> pred[] {
  %s = (f32[], s32[]{:T(128)}) parameter(0)
  %n = s32[]{:T(128)} constant(1050)
  %i = s32[]{:T(128)} get-tuple-element(%s), index=1
  ROOT %c = pred[] compare(%i, %n), direction=LT
}

%above (s: (f32[], s32[])) -> pred[] {
  %s = (f32[], s32[]{:T(128)}) parameter(0)
  %n = s32[]{:T(128)} constant(0)
  %i = s32[]{:T(128)} get-tuple-element(%s), index=1
  ROOT %c = pred[] compare(%n, %i), direction=LT
}

ENTRY %main (p: s32[]) -> s32[] {
  %zero = s32[] constant(-200)
  %start = s32[]{:T(128)} copy(%zero)
  %state = (f32[], s32[]{:T(128)}) tuple(%o, %start)
  %unseen = (f32[], s32[]{:T(128)}) tuple(%o, %p)
  %l = (f32[], s32[]{:T(128)}) while(%state), condition=%below, body=%hundreds
  %m = (f32[], s32[]) while(%unseen), condition=%below, body=%hundreds, metadata={op_name="jit(f)/while#e0"}
  %k = (f32[], s32[]) while(%state), condition=%above, body=%hundreds
  %j = (f32[], s32[]) while(%p), condition=%above, body=%hundreds, backend_config={"known_trip_count":{"n":"4"}}
  %x = s32[] while(%p), condition=%counts, body=%body
  %y = s32[] while(%p), condition=%unknown, body=%body
  %z = s32[] call(%y), to_apply=%twice
  %u = s32[] conditional(%z), branch_computations={%body, %twice}
  %v = s32[] conditional(%z), true_computation=%twice, false_computation=%twice
  %w = s32[] fusion(%z), calls=%body, backend_config={"estimated_cycles":"9223372036854775807"}
  ROOT %r = s32[] fusion(%z), calls=%body, backend_config={"estimated_cycles":"5"}
}
"""


def test_estimated_cycles_of_loops_calls_and_branches() -> None:
    counted_up, seen_once, counted_down, told = 13 * 3, 3, 3, 4 * 3
    assert estimated_cycles(HLO) == counted_up + seen_once + counted_down + told + 100 * 10 + 10 + 7 + 10 + 7 + 0 + 5
    assert estimated_cycles("HloModule empty") == 0
