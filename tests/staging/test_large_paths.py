"""Eager gradients of long paths that Python control flow chooses: compiled only where that pays."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from tests.support.checks import assert_close
from xlamini import numpy as jnp
from xlamini.staging.run.eager.program_cache import met
from xlamini.staging.run.programs import shared

pytestmark = pytest.mark.full

STEPS = 45


def path(x: Any) -> Any:
    """Steps of Newton's method for the square root, of which each looks at its value."""
    y = x
    for _ in range(STEPS):
        y = 0.5 * (y + x / y) if y > 0 else y
    return y


def test_a_long_path_is_compiled_when_it_has_run_for_as_long_as_that_takes() -> None:
    xlamini.clear_caches()
    gradient = xlamini.grad(path)
    for _ in range(3):
        assert_close(gradient(2.0), 0.5 / np.sqrt(2.0), 1e-5)
    assert not shared.programs
    for known in list(met.table):
        met.keep(known, 1e6)
    assert_close(gradient(2.0), 0.5 / np.sqrt(2.0), 1e-5)
    assert len(shared.programs) == 1
    assert_close(gradient(2.0), 0.5 / np.sqrt(2.0), 1e-5)
    assert len(shared.programs) == 1


def test_a_short_one_is_compiled_when_it_comes_again() -> None:
    xlamini.clear_caches()
    gradient = xlamini.grad(lambda x: jnp.sin(x) if x > 0 else x)
    found = [float(gradient(2.0)) for _ in range(3)]
    assert_close(found, [np.cos(2.0)] * 3, 1e-6)
    assert len(shared.programs) == 1
