"""Programs that JAX users write with transformations give what JAX gives; golden/record_transforms.py recorded it."""
from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import xlamini as jax
from tests.golden.programs import programs, ran
from tests.support.paths import GOLDEN

RECORDED = json.loads((GOLDEN / "transforms.json").read_text())
PROGRAMS = programs()


def test_every_program_is_recorded() -> None:
    assert RECORDED.keys() == PROGRAMS.keys()


@pytest.mark.sample(85)
@pytest.mark.parametrize("name", PROGRAMS)
def test_gives_what_jax_gives(name: str) -> None:
    found, wanted = ran(jax, PROGRAMS[name]), RECORDED[name]
    assert found["printed"] == wanted["printed"]
    assert found["leaves"].keys() == wanted["leaves"].keys()
    for path, leaf in found["leaves"].items():
        _check(leaf, wanted["leaves"][path], path)


def _check(found: Any, wanted: Any, path: str) -> None:
    if not isinstance(wanted, dict):
        assert found == wanted, path
        return
    assert found["type"] == wanted["type"], path
    values = np.array(wanted["values"], np.float64)
    exact = not wanted["type"].startswith(("float", "complex", "bfloat"))
    scale = 0.0 if exact or not values.size else float(np.abs(values[np.isfinite(values)]).max(initial=0.0))
    np.testing.assert_allclose(found["values"], values, rtol=0 if exact else 1e-5, atol=2e-6 * scale, err_msg=path)
