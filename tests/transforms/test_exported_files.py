"""Files of exported functions with symbolic sizes that a version wrote, and modules of JAX's own, give JAX's values.

tests/golden/record_exported.py has recorded them. A file of format 3 is never written anew: later versions read it.
"""
from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.golden.exported_program import SYMBOLIC, values
from tests.support.paths import GOLDEN
from xlamini import export
from xlamini.errors import ShapeError
from xlamini.lowering import module_check

FOLDER = GOLDEN / "exported" / "format_3"
VALUES = json.loads((FOLDER / "values.json").read_text())


def check_values(found: Any, name: str) -> None:
    each = values(found.call, name, xlamini)
    pairs = [(x, y) for xs, ys in zip(each, VALUES[name], strict=True) for x, y in zip(xs, ys, strict=True)]
    for leaf, (dtype, shape, expected) in pairs:
        assert (str(leaf.dtype), list(leaf.shape)) == (dtype, shape)
        tolerance = 0 if "int" in dtype else 0.02 if dtype == "bfloat16" else 5e-5
        given = np.asarray(leaf).astype("float64").ravel()
        np.testing.assert_allclose(given, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.full
@pytest.mark.parametrize("name", SYMBOLIC)
def test_a_file_of_format_3_is_read(name: str) -> None:
    blob = (FOLDER / f"{name}.xlamini").read_bytes()
    assert blob.startswith(b"xlamini exported function, format 3\n")
    module_check.checked.clear()
    found, known = export.deserialize(blob), SYMBOLIC[name]
    assert found.platforms == known.platforms and found.has_vjp() == bool(known.vjp_order)
    check_values(found, name)


@pytest.mark.full
def test_the_constraints_of_a_stored_file_are_checked() -> None:
    found = export.deserialize((FOLDER / "two_symbols.xlamini").read_bytes())
    for shape, said in (((2, 4), "do not fulfil n >= 5"), ((3, 5), r"do not fulfil mod\(b, 2\) == 0")):
        with pytest.raises(ShapeError, match=said):
            found.call(np.ones(shape, np.float32))


@pytest.mark.full
@pytest.mark.parametrize("name", ["two_symbols", "kernels"])
def test_a_symbolic_module_of_jax_is_called_in_the_same_way(name: str) -> None:
    known = SYMBOLIC[name]
    ours = export.export(xlamini.jit(known.of(xlamini)))(*known.types(xlamini))
    of_jax = (FOLDER / f"{name}_by_jax_0.10.2.mlirbc").read_bytes()
    check_values(dataclasses.replace(ours, mlir_module_serialized=of_jax), name)
