"""No function is off by more than its budget, in any dtype, over all magnitudes of its arguments."""
from __future__ import annotations

import mpmath
import numpy as np
import pytest

from tests.sweeps.measure import SWEEPS, Worst, budgets, slopes, values
from tests.sweeps.sweep import Sweep, errors

CASES = [(sweep, dtype) for sweep in SWEEPS for dtype in sweep.dtypes]


@pytest.mark.sample(24, full=6)
@pytest.mark.parametrize(("sweep", "dtype"), CASES, ids=[f"{sweep.name}-{dtype}" for sweep, dtype in CASES])
def test_largest_errors(sweep: Sweep, dtype: str) -> None:
    for worst, budget in zip((values(sweep, dtype), slopes(sweep, dtype)), budgets()[sweep.name][dtype], strict=True):
        if isinstance(worst, Worst):
            assert worst.ulp <= float(budget), f"off by {worst.ulp:.3g} ulp at {worst.at}; the budget is {budget}"


def test_errors_are_in_units_in_the_last_place() -> None:
    exact = np.array([mpmath.mpf(1), mpmath.mpf(2), mpmath.mpf(10) ** 50, mpmath.mpf(10) ** -50], object)
    found = np.array([1 + 2**-23, 2 - 2**-23, np.inf, 0], np.float32)
    assert errors(found, exact).tolist() == [1, 0.5, 0, 0]
    assert errors(np.array([np.nan, np.inf, -np.inf, 1], np.float32), exact).tolist()[:3] == [np.inf] * 3
