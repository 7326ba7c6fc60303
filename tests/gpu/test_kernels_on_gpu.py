"""Kernels of one's own on the accelerator: the rows whose texts tests/lowering/test_kernel_numbers.py runs in NumPy.

`--accelerator tpu` runs them on a TPU.
"""
from __future__ import annotations

from typing import Any

import pytest

import xlamini
from tests.lowering.test_kernel_numbers import ROWS
from tests.support.kernel_check import agree
from tests.support.kernel_rows.row import BOTH, Row

pytestmark = pytest.mark.slow  # a compiler takes seconds for a kernel
TARGETS = {"gpu": "cuda", "cuda": "cuda", "tpu": "tpu"}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_numbers(row: Row, accelerator: Any) -> None:
    if TARGETS.get(accelerator.platform, BOTH[0]) not in row.targets:
        pytest.skip("the target has no such operation in kernels")
    outs = xlamini.jit(row.call)(*xlamini.device_put(list(row.operands), accelerator))
    found = xlamini.tree.leaves(outs)
    assert all(x.devices() == {accelerator} for x in found)
    agree(f"{row.name}, {accelerator}", found, row)
