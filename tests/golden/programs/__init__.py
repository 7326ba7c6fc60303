"""Programs that JAX users write with transformations, for any library that has JAX's names.

Each public function in the files here that takes `jax` is one; `ran(library, program)` is what it returns and prints,
as plain JSON.
"""
from __future__ import annotations

import contextlib
import inspect
import io
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from . import apps, axes, control, custom, host

Program = Callable[[ModuleType], Any]


def programs() -> dict[str, Program]:
    """All programs, by file and name."""
    return {
        f"{module.__name__.rpartition('.')[2]}.{name}": fun
        for module in (apps, axes, control, custom, host)
        for name, fun in vars(module).items()
        if inspect.isfunction(fun) and fun.__module__ == module.__name__ and name[0] != "_"
    }


def ran(library: ModuleType, program: Program) -> dict[str, Any]:
    """The path, type and numbers of each leaf of the result, and the lines printed."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        result = program(library)
        library.effects_barrier()
    leaves, _ = library.tree_util.tree_flatten_with_path(result)
    shown = {library.tree_util.keystr(path): described(library, leaf) for path, leaf in leaves}
    return {"leaves": shown, "printed": printed.getvalue().splitlines()}


def described(library: ModuleType, leaf: Any) -> Any:
    """A leaf as JSON: text as lines, numbers with dtype, weak type and shape."""
    if isinstance(leaf, str):
        return leaf.splitlines()
    if isinstance(leaf, bool | int | float):
        return leaf
    kind = f"{leaf.dtype}{' weak' if getattr(leaf, 'weak_type', False) else ''}{list(leaf.shape)}"
    if str(leaf.dtype).startswith("key"):
        leaf = library.random.key_data(leaf)
    values = np.asarray(leaf).ravel()
    if values.dtype.kind == "c":
        values = values.view(values.real.dtype)
    return {"type": kind, "values": [float(f"{v:.7g}") for v in values.astype(np.float64)]}
