"""Record exported programs: `python record_exported.py` writes JAX's StableHLO and values where JAX is there.

JAX writes files only beside the package flatbuffers.

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
from exported_program import (
    ARGUMENTS,
    PLATFORMS,
    SYMBOLIC,
    Symbolic,
    container_arguments,
    container_values,
    containers_program,
    program,
    register,
    sharded_program,
    shardings,
    values,
)

FOLDER = Path(__file__).with_name("exported")
SYMBOLIC_FOLDER = FOLDER / "format_3"
JAX_FOLDER = FOLDER / "jax_0.10.2"


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
    write_files_of_jax(jax)
    if not (path := FOLDER / "by_jax_0.10.2.mlirbc").exists():
        path.write_bytes(of_platforms(jax).mlir_module_serialized)


def of_platforms(jax: ModuleType) -> Any:
    return jax.export.export(jax.jit(program(jax)), platforms=PLATFORMS)(*ARGUMENTS)


def write_files_of_jax(jax: ModuleType) -> None:
    """JAX's files of the same programs, of one with containers, and of one over devices."""
    register(jax)
    b, types = *jax.export.symbolic_shape("b"), sharded_types(jax)
    args, kwargs = container_arguments(b, lambda shape, dtype: jax.ShapeDtypeStruct(shape, dtype))
    containers = jax.jit(containers_program(jax))
    made = {
        **{name: lambda s=s: (symbolic(jax, s), s.vjp_order) for name, s in SYMBOLIC.items()},
        "containers": lambda: (jax.export.export(containers)(*args, **kwargs), 1),
        "sharded": lambda: (jax.export.export(jax.jit(sharded_program(jax)))(*types), 1),
        "platforms_of_fixed_sizes": lambda: (of_platforms(jax), 1),
    }
    JAX_FOLDER.mkdir(exist_ok=True)
    write_new({f"jax_0.10.2/{name}.jax": make for name, make in made.items()})
    text = json.dumps([[*map(plain, x)] for x in container_values(containers, jax)])
    (JAX_FOLDER / "containers.json").write_text(f"{text}\n")


def sharded_types(jax: ModuleType) -> list[Any]:
    return [jax.ShapeDtypeStruct((8, 8), "float32", sharding=s) for s in shardings(jax)]


def write_new(made: dict[str, Any]) -> None:
    """The files that are not there."""
    for name, make in made.items():
        path = FOLDER / name
        if not path.exists():
            exported, vjp_order = make()
            path.write_bytes(exported.serialize(vjp_order))


def symbolic(jax: ModuleType, known: Symbolic) -> Any:
    return jax.export.export(jax.jit(known.of(jax)), platforms=known.platforms)(*known.types(jax))


def plain(x: Any) -> list[Any]:
    """The dtype, shape and values of an array."""
    kind = np.float64 if "float" in str(x.dtype) else np.int64
    return [str(x.dtype), list(x.shape), [float(f"{v:.7g}") for v in np.asarray(x).astype(kind).ravel().tolist()]]


def write_ours(jax: ModuleType) -> None:
    """This version's files."""
    types = sharded_types(jax)
    made = {
        "format_1": lambda: (of_platforms(jax), 1),
        "format_2": lambda: (jax.export.export(jax.jit(sharded_program(jax)))(*types), 1),
        **{f"format_3/{n}": lambda s=s: (symbolic(jax, s), s.vjp_order) for n, s in SYMBOLIC.items()},
    }
    write_new({f"{name}.xlamini": make for name, make in made.items()})


if __name__ == "__main__":
    main("jax" if importlib.util.find_spec("jax") else "xlamini")
