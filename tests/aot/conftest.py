"""Targets to compile for; tests that need one whose compiler is not installed are skipped."""
from __future__ import annotations

import pytest

import xlamini
from xlamini.errors import PlatformError
from xlamini.runtime.targets.topology import Target

SPECS = ("tpu:v5e:2x2", "gpu:h200")


@pytest.fixture(autouse=True)
def _compiled_anew(no_cache: None, optimized: None) -> None:
    """Compilation is what these tests check."""


def target_or_skip(spec: str) -> Target:
    try:
        return xlamini.target(spec)
    except PlatformError as error:
        pytest.skip(str(error))


@pytest.fixture(params=SPECS)
def target(request: pytest.FixtureRequest) -> Target:
    """A TPU, and a GPU."""
    return target_or_skip(request.param)


@pytest.fixture
def tpu() -> Target:
    return target_or_skip("tpu:v5e:2x2")


@pytest.fixture
def gpu() -> Target:
    return target_or_skip("gpu:h200")
