"""What a line costs, and how the time of a kernel is shared among the equations inside."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from tests.inspection import reports
from xlamini.inspection.line_costs import line_costs, row_seconds


def test_equations_share_a_kernel_by_their_flops_plus_bytes() -> None:
    def f(x: Any) -> Any:
        y = jnp.sin(x)
        return y * 2 + x

    found = xlamini.inspect(f)(np.ones(64, np.float32)).json()
    columns = found["equations"]
    fusions = [kernel for kernel in found["targets"][0]["kernels"] if len(kernel["rows"]) > 1]
    assert fusions
    for kernel in fusions:
        work = [columns["flops"][row] + columns["bytes"][row] for row in kernel["rows"]]
        assert kernel["shares"] == pytest.approx([each / sum(work) for each in work])
        assert len(set(kernel["shares"])) > 1
        assert sum(kernel["shares"]) == pytest.approx(1)


def test_the_time_of_a_row_is_its_share() -> None:
    kernels = [
        {"rows": [3, 4], "shares": [0.25, 0.75], "seconds": 4.0},
        {"rows": [4], "shares": [1.0], "seconds": 1.0},
        {"rows": [5], "shares": [1.0], "seconds": None},
    ]
    assert row_seconds({"kernels": kernels}) == {3: 1.0, 4: 4.0}


def test_the_time_of_a_line_is_that_of_the_program_that_was_lowered_for_the_target() -> None:
    report = reports.report()
    target = {**report["targets"][0], "final": 1, "kernels": [reports.kernel("k", "dot", "f32[8,4]", [0], seconds=3.0)]}
    costs = {cost.place.line: cost.seconds for cost in line_costs(report, target).values()}
    assert costs == {5: 3.0, 6: 0.0, 9: 0.0}
