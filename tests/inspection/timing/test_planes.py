"""The planes of GPUs and TPUs: what is a kernel, a copy, a call, and what is counted once."""
from __future__ import annotations

import pytest

from tests.inspection.timing.planes import GPU, TPU, Planes, recording
from xlamini.inspection.timing.report import TimeReport
from xlamini.inspection.timing.trace.events import kernel_runs, trace_events
from xlamini.inspection.timing.trace.files import Recording


def test_the_kernels_of_a_gpu() -> None:
    """Those of the streams alone: neither derived lines nor the host's threads repeat them."""
    runs = kernel_runs(recording(GPU))
    assert {run.device for run in runs} == {"/device:GPU:0"}
    assert [run.end - run.start for run in runs if run.kernel == "loop_fusion"] == [4000.0, 4000.0]
    assert [(run.module, run.program, run.kernel, run.call) for run in runs] == [
        ("jit_step", "jit_step(7)", "loop_fusion", "1"),
        ("jit_step", "jit_step(7)", "dot.2", "1"),
        ("jit_step", "jit_step(7)", "dot.2", "1"),
        ("", "", "cub_sort", "1"),
        ("jit_step", "jit_step(7)", "loop_fusion", "2"),
        ("jit_step", "jit_step(7)", "dot.2", "2"),
        ("jit_step", "jit_step(7)", "dot.2", "2"),
    ]


def test_the_copies_of_a_gpu() -> None:
    transfers = trace_events(recording(GPU)).transfers
    assert [(t.device, t.direction, t.bytes, t.seconds) for t in transfers] == [
        ("/device:GPU:0", "H2D", 4096, pytest.approx(600e-9)),
        ("/device:GPU:0", "H2D", 4096, pytest.approx(600e-9)),
        ("/device:GPU:0", "D2H", 4, pytest.approx(300e-9)),
    ]


def test_the_operations_of_a_tpu() -> None:
    """What goes on beside the others, a loop that has its operations' time, and a core of another kind do not count."""
    found = [(run.module, run.program, run.kernel, run.opcode, run.call) for run in kernel_runs(recording(TPU))]
    assert found == [
        ("jit_step", "jit_step(1234567)", "copy-start.1", "copy-start", "11"),
        ("jit_step", "jit_step(1234567)", "fusion.3", "fusion", "11"),
        ("jit_step", "jit_step(1234567)", "fusion.3", "fusion", "11"),
        ("jit_step", "jit_step(1234567)", "dot.9", "", "11"),
        ("jit_step", "jit_step(1234567)", "fusion.3", "fusion", "12"),
        ("", "", "fusion.3", "fusion", ""),
    ]


@pytest.mark.parametrize(("planes", "calls", "total"), [(GPU, 2, 12e-6), (TPU, 2, 7.1e-6)])
def test_the_table_of_a_program(planes: Planes, calls: int, total: float) -> None:
    rows = {row.name: row for row in TimeReport([Recording("", recording(planes))]).table(by="program").rows}
    assert (rows["jit_step"].calls, rows["jit_step"].seconds) == (calls, pytest.approx(total))
