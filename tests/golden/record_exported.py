"""Record an exported program: `python record_exported.py` writes JAX's StableHLO where JAX is there, else our file."""
from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path

from exported_program import ARGUMENTS, PLATFORMS, program, sharded_program, shardings

FOLDER = Path(__file__).with_name("exported")


def main(library: str) -> None:
    jax = importlib.import_module(library)
    export = importlib.import_module(f"{library}.export")
    found = export.export(jax.jit(program(jax)), platforms=PLATFORMS)(*ARGUMENTS)
    FOLDER.mkdir(exist_ok=True)
    if library == "jax":
        (FOLDER / "by_jax_0.10.2.mlirbc").write_bytes(found.mlir_module_serialized)
    else:
        (FOLDER / "format_1.xlamini").write_bytes(found.serialize(vjp_order=1))
        types = [jax.ShapeDtypeStruct((8, 8), "float32", sharding=s) for s in shardings(jax)]
        over_mesh = export.export(jax.jit(sharded_program(jax)))(*types)
        (FOLDER / "format_2.xlamini").write_bytes(over_mesh.serialize(vjp_order=1))


if __name__ == "__main__":
    main("jax" if importlib.util.find_spec("jax") else "xlamini")
