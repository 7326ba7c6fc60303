"""Rows of operations exported for a TPU, a GPU and the CPU at once, and called here."""
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
from xlamini import export, tree_util

TOGETHER = 40
"""Rows of one program."""
NOT_ON_A_TPU = ("eig", "schur", "hessenberg", "tridiagonal", "ormqr", "qr: pivoting", "svd: QR", "geqp3")


def rows() -> list[Row]:
    """Operations of `lax`, which all others are made of, in single precision."""
    basic = [r for r in all_rows() if "." not in r.name or r.name.startswith("lax.linalg")]
    return [r for r in basic if "float32" in r.dtypes and not any(word in r.name for word in NOT_ON_A_TPU)]


ROWS = rows()
BATCHES = [ROWS[i : i + TOGETHER] for i in range(0, len(ROWS), TOGETHER)]


@pytest.mark.slow
@pytest.mark.parametrize("batch", BATCHES, ids=lambda batch: f"{batch[0]} to {batch[-1]}")
def test_rows(batch: Sequence[Row]) -> None:
    alike = [row for row in batch if isinstance(checks.wide(row, "float32"), contextlib.nullcontext)]
    arguments = [row.arguments(row.samples[0], "float32", row.rng()) for row in alike]

    def every(arguments: Sequence[Sequence[Any]]) -> list[Any]:
        return [row.op(*given) for row, given in zip(alike, arguments, strict=True)]

    found = export.export(xlamini.jit(every), platforms=("tpu", "cuda", "cpu"))(arguments).call(arguments)
    for row, ours, wanted in zip(alike, found, xlamini.jit(every)(arguments), strict=True):
        for a, b in zip(tree_util.tree_leaves(ours), tree_util.tree_leaves(wanted), strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-5, atol=1e-6, err_msg=row.name)
