"""The fits of `fits.py` with as many terms as the dtype can tell apart: in float32 about half of them."""
from __future__ import annotations

from typing import Any

import numpy as np

from xlamini.core import aval_of, memoised
from xlamini.primitives.elementwise.special.formula import horner

_NEGLIGIBLE = 2e-9
"""The sum of the terms that float32 does without, a thirtieth of its rounding of 1; all fits are near 1."""


def fitted(t: Any, coefficients: tuple[float, ...]) -> Any:
    """A fit at t from -1 to 1, in float32 or float64."""
    wide = aval_of(t).dtype == np.float64
    return horner(t, coefficients if wide else _economized(coefficients))


@memoised("helper: terms of fits in float32", None)
def _economized(coefficients: tuple[float, ...]) -> tuple[float, ...]:
    """The polynomial without the last terms of its Chebyshev series, each of which is at most its coefficient."""
    from numpy.polynomial import chebyshev  # numpy imports it late too

    series = chebyshev.poly2cheb(coefficients[::-1])
    rest = np.cumsum(np.abs(series[::-1]))[::-1]
    return tuple(chebyshev.cheb2poly(series[rest > _NEGLIGIBLE])[::-1].tolist())
