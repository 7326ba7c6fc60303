"""Tests on a GPU: `python -m pytest tests/gpu`. Where none works they are skipped, with the reason.

`--accelerator NAME` runs them on another platform of `xlamini.devices(NAME)`; with "cpu" they test themselves.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import pytest

import xlamini


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--accelerator", default="gpu", help="the platform that tests/gpu compares with the CPU")


@functools.cache
def _first_device(platform: str) -> Any:
    """The first device of a platform, or why there is none."""
    try:
        return xlamini.devices(platform)[0]
    except RuntimeError as error:
        return str(error)


@pytest.fixture
def accelerator(request: pytest.FixtureRequest, optimized: None) -> Iterator[Any]:
    """The device under test; arrays are made there, and matrix products are exact to their dtype."""
    device = _first_device(request.config.getoption("--accelerator"))
    if isinstance(device, str):
        pytest.skip(device)
    with xlamini.default_device(device), xlamini.default_matmul_precision("highest"):
        yield device
