"""The numbers of kernels, three ways: the scan on the CPU, the text for a GPU and for a TPU in NumPy, NumPy itself."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.kernel_check import check_scan, check_text
from tests.support.kernel_rows import (
    accesses,
    elementwise,
    gpu,
    loops,
    memory,
    parts,
    products,
    programs,
    reductions,
    shapes,
)
from tests.support.kernel_rows.row import Row

FILES = (elementwise, reductions, products, shapes, memory, parts, loops, accesses, programs, gpu)


def _rows() -> Iterator[Row]:
    for file in FILES:
        yield from file.rows()


ROWS = list(_rows())
TEXTS = [(row, target) for row in ROWS for target in row.targets]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_scan(row: Row) -> None:
    check_scan(row)


@pytest.mark.parametrize(("row", "target"), TEXTS, ids=[f"{row.name}, {target}" for row, target in TEXTS])
def test_text(row: Row, target: str) -> None:
    check_text(row, target)
