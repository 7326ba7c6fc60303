"""Rows exported for a TPU, a GPU and the CPU at once; those of operations are called here too."""
from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.rows import all_rows
from tests.rows.row import Row
from tests.support import checks
from xlamini import export, lax, tree_util

TOGETHER = 40
"""Rows of one program."""
NOT_ON_A_TPU = ("eig", "schur", "hessenberg", "tridiagonal", "ormqr", "qr: pivoting", "svd: QR", "geqp3")


def rows() -> list[Row]:
    """Operations of `lax`, which all others are made of, in single precision."""
    basic = [r for r in all_rows() if "." not in r.name or r.name.startswith("lax.linalg")]
    return [r for r in basic if "float32" in r.dtypes and not any(word in r.name for word in NOT_ON_A_TPU)]


ROWS = rows()
BATCHES = [ROWS[i : i + TOGETHER] for i in range(0, len(ROWS), TOGETHER)]


PLATFORMS = ("tpu", "cuda", "cpu")
CUMULATIVE = ("cumsum", "cumprod", "cummax", "cummin")


@pytest.mark.parametrize("name", CUMULATIVE)
def test_complex_numbers_of_several_platforms(name: str) -> None:
    z = np.array([1 + 1j, 2 - 1j, 0.5j], np.complex64)
    exported = export.export(xlamini.jit(getattr(lax, name)), platforms=PLATFORMS)(z)
    np.testing.assert_allclose(exported.call(z), getattr(lax, name)(z), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.sample(6, full=6)
@pytest.mark.parametrize("part", range(12))
def test_every_dtype_of_every_row(part: int) -> None:
    """Nothing is compiled: a row without a kernel for a platform says so, all others are exported."""
    failed = []
    for row in all_rows()[part::12]:
        for dtype in row.dtypes:
            with checks.wide(row, dtype):
                arguments = row.arguments(row.samples[0], dtype, row.rng())
                try:
                    export.export(xlamini.jit(lambda *args, op=row.op: op(*args)), platforms=PLATFORMS)(*arguments)
                except NotImplementedError:
                    continue
                except Exception as error:
                    failed.append(f"{row.name} {dtype}: {type(error).__name__}: {error}")
    assert not failed, failed


@pytest.mark.slow
@pytest.mark.parametrize("batch", BATCHES, ids=lambda batch: f"{batch[0]} to {batch[-1]}")
def test_rows(batch: Sequence[Row]) -> None:
    alike = [row for row in batch if isinstance(checks.wide(row, "float32"), contextlib.nullcontext)]
    arguments = [row.arguments(row.samples[0], "float32", row.rng()) for row in alike]

    def every(arguments: Sequence[Sequence[Any]]) -> list[Any]:
        return [row.op(*given) for row, given in zip(alike, arguments, strict=True)]

    found = export.export(xlamini.jit(every), platforms=PLATFORMS)(arguments).call(arguments)
    for row, ours, wanted in zip(alike, found, xlamini.jit(every)(arguments), strict=True):
        for a, b in zip(tree_util.tree_leaves(ours), tree_util.tree_leaves(wanted), strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5, atol=1e-6, err_msg=row.name)
