"""Makes a recorded call again, with any library that has JAX's names.

A call is plain JSON: `call` names a function of `random`, `seed` makes the key it takes first (none
if null; of the generator `impl` if `kwargs` names one), `args` and `kwargs` follow, and `x64` says
whether 64-bit types are on. Lists stand for tuples, {"array": [...], "dtype": "..."} for arrays.
"""

from __future__ import annotations

import contextlib
from types import ModuleType
from typing import Any

import numpy as np

FIRST, LAST = 24, 4

Json = Any


def replay(library: ModuleType, call: dict[str, Json]) -> np.ndarray:
    """Return the call's result; keys are returned as their uint32 data."""
    function = getattr(library.random, call["call"])
    with library.enable_x64(True) if call["x64"] else contextlib.nullcontext():
        kwargs = {name: decode(library, arg) for name, arg in call["kwargs"].items()}
        impl = None if call["seed"] is None else kwargs.pop("impl", None)
        key = [] if call["seed"] is None else [library.random.key(call["seed"], impl=impl)]
        args = [decode(library, arg) for arg in call["args"]]
        return _as_numpy(library, function(*key, *args, **kwargs))


def decode(library: ModuleType, argument: Json) -> Any:
    """Turn a JSON argument into what the function takes."""
    if isinstance(argument, list):
        return tuple(decode(library, item) for item in argument)
    if isinstance(argument, dict):
        return library.numpy.asarray(np.array(argument["array"], argument["dtype"]))
    return argument


def summary(result: np.ndarray) -> dict[str, Json]:
    """Shape, dtype and the first and last few values, flattened: floats exactly, as doubles."""
    return {
        "shape": list(result.shape),
        "dtype": result.dtype.name,
        "first": _as_json(result.ravel()[:FIRST]),
        "last": _as_json(result.ravel()[FIRST:][-LAST:]),
    }


def _as_numpy(library: ModuleType, result: Any) -> np.ndarray:
    if str(result.dtype).startswith("key"):
        result = library.random.key_data(result)
    return np.asarray(result)


def _as_json(values: np.ndarray) -> list[Json]:
    if values.dtype.kind in "biu":
        return values.tolist()
    if values.dtype.kind == "c":
        return [[float(value.real), float(value.imag)] for value in values]
    return [float(value) for value in values]
