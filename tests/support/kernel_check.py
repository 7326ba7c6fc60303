"""Runs a row of the table of kernels three ways: the scan on the CPU, the kernel's text, NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

import xlamini
from tests.support.kernel_rows.row import Row
from tests.support.kernel_text.stablehlo import run_program


def check_text(row: Row, target: str) -> None:
    """The text of the kernel for a target gives NumPy's numbers."""
    lowered = xlamini.jit(row.call).trace(*row.operands).lower(lowering_platforms=(target,))
    agree(f"{row.name}, {target}", run_program(lowered.as_text(), row.operands), row)


def check_scan(row: Row) -> None:
    """The scan on the CPU gives NumPy's numbers."""
    found = row.call(*row.operands)
    agree(f"{row.name}, scan", found if isinstance(found, list | tuple) else [found], row)


def agree(what: str, found: Sequence[Any], row: Row) -> None:
    """The results are NumPy's, within the row's tolerance."""
    expected = row.expected(*row.operands)
    expected = expected if isinstance(expected, list | tuple) else [expected]
    for i, (x, y) in enumerate(zip(found, expected, strict=True)):
        x, y = np.asarray(x), np.asarray(y)
        assert x.shape == y.shape, f"{what}: result {i} has shape {x.shape}, not {y.shape}"
        wide = np.float64 if x.dtype.kind not in "iub" else x.dtype
        np.testing.assert_allclose(
            x.astype(wide), y.astype(wide), rtol=row.tolerance, atol=row.tolerance, err_msg=f"{what}: result {i}"
        )
