"""Lowers one program with one library for targets, and writes its StableHLO into a folder; one process each.

    python -m benchmarks.targets.lower LIBRARY PROGRAM FOLDER TARGET…

prints as JSON, for each target, the file or the error. JAX lowers for the target's platform, as it knows no targets.
"""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path
from types import ModuleType

from benchmarks.targets.counts import failure
from benchmarks.targets.program import Program
from benchmarks.targets.programs import programs

MODULES = ("numpy", "lax", "nn", "ops", "image", "random", "scipy.linalg", "scipy.special")
PLATFORMS = {"tpu": "tpu", "gpu": "cuda"}


def load(library: str) -> ModuleType:
    """The library, with the modules that programs use, for devices that are not here."""
    import_modules(library)
    if library == "jax":
        _pretend_cudnn()
    return importlib.import_module(library)


def import_modules(library: str) -> None:
    """Import the modules that programs use."""
    for name in MODULES:
        importlib.import_module(f"{library}.{name}")


def _pretend_cudnn() -> None:
    """JAX asks the cuDNN of a GPU for its version before it calls it; here there is none."""
    module = importlib.import_module("jax._src.cudnn.fused_attention_stablehlo")
    module.check_cudnn_version = lambda: 91200
    module.check_compute_capability = lambda capability: True


def stablehlo(jax: ModuleType, program: Program, target: str) -> str:
    """The text of the program's StableHLO for a target."""
    traced = jax.jit(program.fun, donate_argnums=program.donated).trace(*program.types(jax))
    if hasattr(jax, "target"):
        lowered = traced.lower(target=jax.target(target))
    else:
        lowered = traced.lower(lowering_platforms=(PLATFORMS[target.partition(":")[0]],))
    return lowered.compiler_ir("stablehlo").operation.get_asm()


def main(library: str, name: str, folder: str, *targets: str) -> None:
    """Write each target's file, or say why there is none."""
    jax = load(library)
    program = programs(jax)[name]
    found = {}
    for target in targets:
        path = Path(folder) / f"{name}.{target.replace(':', '_')}.{library}.mlir"
        try:
            path.write_text(stablehlo(jax, program, target))
            found[target] = {"path": str(path)}
        except Exception as error:
            found[target] = failure(error)
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
