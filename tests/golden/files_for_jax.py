"""Files for JAX, checked by hand: `python files_for_jax.py FOLDER` writes them where JAX is not there.

Where it is, beside the package flatbuffers, JAX reads them, and its values and derivatives are compared.
"""
from __future__ import annotations

import importlib
import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from exported_program import SYMBOLIC, values
from record_exported import SYMBOLIC_FOLDER, sharded_program, sharded_types, symbolic


def main(folder: Path, library: str) -> None:
    jax = importlib.import_module(library)
    importlib.import_module(f"{library}.export")
    if library == "jax":
        recorded = json.loads((SYMBOLIC_FOLDER / "values.json").read_text())
        for name in SYMBOLIC:
            found = jax.export.deserialize(bytearray((folder / f"{name}.jax").read_bytes()))
            compare(values(found.call, name, jax), recorded[name])
            print(name, "has the recorded values")
        check_sharded(jax, folder)
    else:
        for name, known in SYMBOLIC.items():
            write(jax, folder / f"{name}.jax", symbolic(jax, known), known.vjp_order)
        sharded = jax.export.export(jax.jit(sharded_program(jax)))(*sharded_types(jax))
        write(jax, folder / "sharded.jax", sharded, 1)


def write(jax: ModuleType, path: Path, exported: Any, vjp_order: int) -> None:
    path.write_bytes(jax.export.serialize_for_jax(exported, vjp_order))


def compare(found: list[list[Any]], recorded: list[Any]) -> None:
    for leaves, expected in zip(found, recorded, strict=True):
        for leaf, (dtype, shape, numbers) in zip(leaves, expected, strict=True):
            assert (str(leaf.dtype), list(leaf.shape)) == (dtype, shape)
            tolerance = 0 if "int" in dtype else 0.02 if dtype == "bfloat16" else 5e-5
            given = np.asarray(leaf).astype("float64").ravel()
            np.testing.assert_allclose(given, numbers, rtol=tolerance, atol=tolerance)


def check_sharded(jax: ModuleType, folder: Path) -> None:
    """With XLA_FLAGS=--xla_force_host_platform_device_count=8."""
    found = jax.export.deserialize(bytearray((folder / "sharded.jax").read_bytes()))
    mesh = jax.make_mesh((2, 4), ("x", "y"), axis_types=(jax.sharding.AxisType.Auto,) * 2)
    x, w = np.sin(np.arange(128, dtype=np.float32)).reshape(2, 8, 8)
    there = [jax.device_put(a, s) for a, s in zip((x, w), found.in_shardings_jax(mesh), strict=True)]
    wanted = jax.value_and_grad(sharded_program(jax))(x, w)
    for a, b in zip(jax.value_and_grad(found.call)(*there), wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)
    print("sharded has JAX's values")


if __name__ == "__main__":
    main(Path(sys.argv[1]), "jax" if importlib.util.find_spec("jax") else "xlamini")
