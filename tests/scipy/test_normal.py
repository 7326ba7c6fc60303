"""The normal distribution's integral in float32, against SciPy in float64."""
from __future__ import annotations

import numpy as np
import scipy.special as reference

from tests.primitives.test_cpu_math import ulps
from xlamini.scipy import special

NEAR_ZERO = np.linspace(-0.05, 0.05, 20_001, dtype=np.float32)


def test_near_zero_the_integral_is_nearly_rounded_right() -> None:
    assert ulps(np.asarray(special.ndtr(NEAR_ZERO)), reference.ndtr(NEAR_ZERO.astype(np.float64))) <= 1


def test_both_formulas_of_the_integral_meet() -> None:
    x = np.linspace(-1, 1, 20_001, dtype=np.float32)
    assert ulps(np.asarray(special.ndtr(x)), reference.ndtr(x.astype(np.float64))) <= 4


def test_the_inverse_of_the_integral_gives_the_argument_back() -> None:
    """One unit in the last place of an integral near a half is 8e-6 of an argument of 0.018."""
    x = np.linspace(0.018, 0.05, 2_001, dtype=np.float32)
    np.testing.assert_allclose(np.asarray(special.ndtri(special.ndtr(x))), x, rtol=9e-6)
