"""Record exported programs: `python record_exported.py` writes JAX's StableHLO and values where JAX is there.

Elsewhere it writes this version's files. What is there already stays: it is of the version that wrote it.
"""
from __future__ import annotations

import importlib
import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from exported_program import ARGUMENTS, PLATFORMS, SYMBOLIC, Symbolic, program, sharded_program, shardings, values

FOLDER = Path(__file__).with_name("exported")
SYMBOLIC_FOLDER = FOLDER / "format_3"


def main(library: str) -> None:
    jax = importlib.import_module(library)
    importlib.import_module(f"{library}.export")
    SYMBOLIC_FOLDER.mkdir(exist_ok=True, parents=True)
    if library == "jax":
        write_jax(jax)
    else:
        write_ours(jax)


def write_jax(jax: ModuleType) -> None:
    """JAX's modules, and its values for the programs with symbolic sizes."""
    jax.config.update("jax_traceback_in_locations_limit", 0)  # paths of the machine are no part of it
    recorded = {name: [[*map(plain, x)] for x in values(known.of(jax), name, jax)] for name, known in SYMBOLIC.items()}
    lines = [f"{json.dumps(name)}: {json.dumps(each)}" for name, each in recorded.items()]
    (SYMBOLIC_FOLDER / "values.json").write_text("{" + ",\n".join(lines) + "}\n")
    for name in ("two_symbols", "kernels"):
        if not (path := SYMBOLIC_FOLDER / f"{name}_by_jax_0.10.2.mlirbc").exists():
            path.write_bytes(symbolic(jax, SYMBOLIC[name]).mlir_module_serialized)
    if not (path := FOLDER / "by_jax_0.10.2.mlirbc").exists():
        found = jax.export.export(jax.jit(program(jax)), platforms=PLATFORMS)(*ARGUMENTS)
        path.write_bytes(found.mlir_module_serialized)


def symbolic(jax: ModuleType, known: Symbolic) -> Any:
    return jax.export.export(jax.jit(known.of(jax)), platforms=known.platforms)(*known.types(jax))


def plain(x: Any) -> list[Any]:
    """The dtype, shape and values of an array."""
    kind = np.float64 if "float" in str(x.dtype) else np.int64
    return [str(x.dtype), list(x.shape), [float(f"{v:.7g}") for v in np.asarray(x).astype(kind).ravel().tolist()]]


def write_ours(jax: ModuleType) -> None:
    """The files that are not there."""
    types = [jax.ShapeDtypeStruct((8, 8), "float32", sharding=s) for s in shardings(jax)]
    made = {
        "format_1": lambda: (jax.export.export(jax.jit(program(jax)), platforms=PLATFORMS)(*ARGUMENTS), 1),
        "format_2": lambda: (jax.export.export(jax.jit(sharded_program(jax)))(*types), 1),
        **{f"format_3/{n}": lambda s=s: (symbolic(jax, s), s.vjp_order) for n, s in SYMBOLIC.items()},
    }
    for name, make in made.items():
        path = FOLDER / f"{name}.xlamini"
        if not path.exists():
            exported, vjp_order = make()
            path.write_bytes(exported.serialize(vjp_order))


if __name__ == "__main__":
    main("jax" if importlib.util.find_spec("jax") else "xlamini")
