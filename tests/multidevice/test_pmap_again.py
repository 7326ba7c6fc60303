"""`pmap` of a function made anew, as `pmap(lambda x: ...)(x)` in a loop, runs what the first one has compiled."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from tests.multidevice.meshes import DEVICES, table
from xlamini import numpy as jnp, pmap
from xlamini.staging.compile import compile_request

X = table(16)


def same(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(np.asarray(found), np.asarray(expected), rtol=1e-6)


@pytest.fixture
def compilations(monkeypatch: pytest.MonkeyPatch, no_cache: None) -> list[Any]:
    found: list[Any] = []

    def compile_module(*args: Any, **kwargs: Any) -> Any:
        found.append(args)
        return plain(*args, **kwargs)

    plain = compile_request.compile_module
    monkeypatch.setattr(compile_request, "compile_module", compile_module)
    return found


def test_pmap_in_a_loop_is_compiled_once(compilations: list[Any]) -> None:
    weights = jnp.arange(2.0)
    compilations.clear()
    for i in range(4):
        same(pmap(lambda x, w: x * weights + w, in_axes=(0, None))(X.reshape(8, 2) + i, i), _expected(i))
    assert len(compilations) == 1
    for i in range(4):
        same(pmap(_shifted, static_broadcasted_argnums=1)(X.reshape(8, 2) + i, 3), X.reshape(8, 2) + i + 3)
    assert len(compilations) == 2


def _expected(i: int) -> Any:
    return (X.reshape(8, 2) + i) * np.arange(2) + i


def _shifted(x: Any, by: int) -> Any:
    return x + by


@pytest.mark.full
def test_another_pmap_is_another_program(compilations: list[Any]) -> None:
    x = xlamini.device_put(X.reshape(8, 2))
    for factor, options in ((5, {}), (6, {}), (5, {"devices": DEVICES[::-1]}), (5, {"out_axes": 1})):
        found = pmap(lambda x: x * factor, **options)(x)  # noqa: B023
        same(found, factor * (X.reshape(8, 2).T if "out_axes" in options else X.reshape(8, 2)))
    assert len(compilations) == 4
    given = pmap(lambda x: x * 5)(x)
    assert len(compilations) == 4
    pmap(lambda x: x * 5, donate_argnums=0)(given)
    assert len(compilations) == 5
    assert given.is_deleted()
    xlamini.clear_caches()
    pmap(lambda x: x * 5)(x)
    assert len(compilations) == 6
