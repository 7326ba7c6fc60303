"""The rows of tests/rows as checked programs: nothing fails on clean input, and the results are those of the rows."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from tests.rows import all_rows
from tests.rows.row import Row
from tests.support.checks import assert_all_close, flat, wide
from xlamini.experimental import checkify as module

pytestmark = pytest.mark.sample(40)

checkify: Any = module.checkify

OUT_OF_BOUNDS = (
    "dynamic_slice", "dynamic_slice: by a vector", "dynamic_update_slice", "gather: with clipping",
    "gather: with filling", "gather: of windows", "scatter", "scatter: at unique indices", "scatter_add", "scatter_sub",
    "scatter_mul: at unique indices", "scatter_min", "scatter_max", "scatter_add: with clipping",
)  # fmt: skip
"""Rows whose arguments are indices out of bounds."""
REPORTED = (
    "numpy.nonzero", "numpy.flatnonzero", "numpy.argwhere", "numpy.insert", "numpy.union1d", "numpy.intersect1d",
    "numpy.setdiff1d", "numpy.setxor1d", "numpy.compress", "numpy.extract", "random.multinomial", "scipy.special.expi",
)  # fmt: skip
"""Functions that put what they drop out of bounds, or compute what they mask; docs/debugging.md says so."""


@pytest.mark.sample(144, full=4)
@pytest.mark.parametrize("row", all_rows(), ids=lambda row: row.name)
def test_rows(row: Row) -> None:
    if row.name in OUT_OF_BOUNDS:
        pytest.skip("its indices are out of bounds")
    dtype = "float32" if "float32" in row.dtypes else row.dtypes[0]
    arguments = row.arguments(row.samples[0], dtype, row.rng(dtype))
    with wide(row, dtype):
        arrays = xlamini.device_put(list(arguments))
        plain = flat(row.op)(*arrays)
        error, found = checkify(flat(row.op), module.all_checks)(*arrays)
        if all(map(_is_clean, (*arrays, *plain))):
            assert (error.get() is None) == (row.name not in REPORTED), error.get()
        assert_all_close(found, plain, max(row.tolerance_of(plain[0].dtype), 1e-5), "checked beside plain")


def _is_clean(x: Any) -> bool:
    if not hasattr(x, "dtype") or not xlamini.numpy.issubdtype(x.dtype, np.inexact):
        return True
    return bool(np.isfinite(np.asarray(x)).all())
