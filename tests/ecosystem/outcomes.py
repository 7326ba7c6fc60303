"""Run the programs of a library and name every array they return; compare with the recorded ones."""
from __future__ import annotations

import importlib
import inspect
import json
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent
LIBRARIES = sorted(path.stem for path in (FOLDER / "programs").glob("[a-z]*.py"))
TOLERANCE = 1e-5
"""Relative to the largest magnitude of the array. A module of programs may say otherwise, and why: `TOLERANCES`."""
EXACT = "biu"
"""The kinds of dtypes whose values are compared exactly."""


def programs(library: str) -> ModuleType:
    """The module of a library's programs, which run on eight CPU devices."""
    import jax

    jax.config.update("jax_num_cpu_devices", 8)
    return importlib.import_module(f"tests.ecosystem.programs.{library}")


def functions(module: ModuleType) -> dict[str, Callable[[], Any]]:
    """The programs: the public functions that the module itself defines, in its order."""
    own = inspect.getmembers(module, lambda f: inspect.isfunction(f) and f.__module__ == module.__name__)
    return {name: f for name, f in sorted(own, key=_line) if not name.startswith("_")}


def _line(member: tuple[str, Any]) -> int:
    return member[1].__code__.co_firstlineno


def named(value: Any, name: str) -> Iterator[tuple[str, np.ndarray]]:
    """The arrays of nested dicts, lists and tuples, each with its path."""
    if isinstance(value, dict):
        parts = value.items()
    elif isinstance(value, list | tuple):
        parts = enumerate(value)
    else:
        yield name, np.asarray(value)
        return
    for key, part in parts:
        yield from named(part, f"{name}.{key}")


def recorded(library: str) -> dict[str, np.ndarray]:
    """The values that JAX gave, by PROGRAM.NAME."""
    stored = json.loads(_file(library).read_text())
    return {name: np.array(value, dtype) for name, (dtype, value) in stored.items()}


def store(library: str, values: dict[str, np.ndarray]) -> None:
    lines = [f"{json.dumps(name)}: {json.dumps([x.dtype.name, _plain(x)])}" for name, x in values.items()]
    _file(library).write_text("{\n" + ",\n".join(lines) + "\n}\n")


def _file(library: str) -> Path:
    return FOLDER / "values" / f"{library}.json"


def _plain(x: np.ndarray) -> Any:
    """Nested lists, with the fewest digits that give back each number."""
    if x.ndim:
        return [_plain(row) for row in x]
    return x.item() if x.dtype.kind in EXACT else float(str(x))


def differences(library: str) -> Iterator[str]:
    """A line for each program that fails and each array that is not the recorded one."""
    module = programs(library)
    expected = recorded(library)
    tolerances = getattr(module, "TOLERANCES", {})
    for program, f in functions(module).items():
        own = {name: x for name, x in expected.items() if name.startswith(f"{program}.")}
        try:
            got = dict(named(f(), program))
        except Exception:
            yield f"{library}: {program} failed:\n{traceback.format_exc()}"
            continue
        yield from differing(got, own, tolerances.get(program, TOLERANCE))


def differing(got: dict[str, np.ndarray], expected: dict[str, np.ndarray], tolerance: float) -> Iterator[str]:
    """A line for each array that is not the expected one, by name."""
    if list(got) != list(expected):
        yield f"the names are {list(got)}, and recorded were {list(expected)}"
    for name in filter(expected.__contains__, got):
        wrong = _difference(got[name], expected[name], tolerance)
        if wrong:
            yield f"{name}: {wrong}"


def _difference(got: np.ndarray, expected: np.ndarray, tolerance: float) -> str:
    if (got.shape, got.dtype) != (expected.shape, expected.dtype):
        return f"{got.dtype}{list(got.shape)} and not {expected.dtype}{list(expected.shape)}"
    if expected.dtype.kind in EXACT:
        return "" if np.array_equal(got, expected) else f"{got.tolist()} and not {expected.tolist()}"
    scale = np.max(np.abs(expected), initial=0, where=np.isfinite(expected))
    if np.allclose(got, expected, rtol=0, atol=tolerance * scale, equal_nan=True):
        return ""
    return f"off by {np.max(np.abs(got - expected)) / scale:.1e} of the largest magnitude, {scale:.6g}"
