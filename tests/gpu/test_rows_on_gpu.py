"""Every row of tests/rows on the accelerator, beside its reference and beside the CPU.

The CPU is checked against finite differences and loops elsewhere; here its derivatives and batches are the reference.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.rows import all_rows
from tests.rows.row import Row, Sample
from tests.support import checks

pytestmark = pytest.mark.slow  # a GPU's compiler takes seconds for a row
ROWS = all_rows()
TOLERANCE = {"float64": 1e-9, "complex128": 1e-9, "float32": 2e-4, "complex64": 2e-4}
"""For derivatives: sums come in another order, and functions of the standard library differ in their last bits."""
NARROW_PRODUCTS = {"scaled_dot", "dot: a DotAlgorithm", "nn.scaled_dot_general: mxfp8"}
"""Rows whose products a GPU computes in narrow dtypes, and a CPU in wide ones: about 1 % of the largest element."""


def each_row(rows: Sequence[Row]) -> Any:
    return pytest.mark.parametrize("row", rows, ids=lambda row: row.name)


def derivative_case(row: Row) -> tuple[Sample, str] | None:
    """The first sample, in the first dtype, that has derivatives."""
    cases = ((s, d) for d in TOLERANCE if d in row.dtypes for s in row.samples if row.differentiable_argnums(s, d))
    return next(cases, None)


def on_both(device: Any, fun: Callable[..., Any], operands: Any) -> tuple[list[Any], list[Any]]:
    """The arrays of `fun(*operands)`, computed on the accelerator and on the CPU."""
    results = []
    for where in (device, xlamini.devices("cpu")[0]):
        with xlamini.default_device(where):
            outs = xlamini.jit(fun)(*xlamini.device_put(operands, where))
        results.append(xlamini.tree.leaves(outs))
    assert all(x.devices() == {device} for x in results[0])
    return results[0], results[1]


@each_row([row for row in ROWS if row.name not in NARROW_PRODUCTS])
def test_values_and_dtypes(row: Row, accelerator: Any) -> None:
    for dtype in row.dtypes:
        checks.check_values(row, row.samples[0], dtype)


@each_row([row for row in ROWS if derivative_case(row)])
def test_derivatives_are_the_cpus(row: Row, accelerator: Any) -> None:
    case = derivative_case(row)
    assert case is not None
    sample, dtype = case
    with checks.wide(row, dtype):
        point = checks.Point(row, sample, dtype)

        def derivatives(primals: Any, tangents: Any, cotangents: Any) -> Any:
            pushed = xlamini.jvp(point.fun, primals, tangents)
            return pushed, xlamini.vjp(point.fun, *primals)[1](cotangents)

        operands = (tuple(point.primals), tuple(point.tangents), point.weights)
        found, expected = on_both(accelerator, derivatives, operands)
    tolerance = TOLERANCE[dtype] * checks.scale_of(expected)
    checks.assert_all_close(found, expected, tolerance, "derivatives beside the CPU's")


@each_row([row for row in ROWS if row.batched and row.name not in NARROW_PRODUCTS])
def test_batches_are_the_cpus(row: Row, accelerator: Any) -> None:
    dtype = "float32" if "float32" in row.dtypes else row.dtypes[-1]
    sample = row.samples[0]
    with checks.wide(row, dtype):
        examples = [row.arguments(sample, dtype, row.rng("gpu", i)) for i in range(checks.BATCH)]
        operands = [np.stack(xs) for xs in zip(*examples, strict=True)]
        found, expected = on_both(accelerator, xlamini.vmap(checks.flat(row.op)), operands)
    tolerance = TOLERANCE.get(dtype, 2e-2) * checks.scale_of(expected)
    checks.assert_all_close(found, expected, tolerance, "vmap beside the CPU's")
