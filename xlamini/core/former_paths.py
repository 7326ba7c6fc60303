"""Former paths: modules that pickles name which an earlier version wrote are found where they are now."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_MOVED = {
    "xlamini.core.avals": "xlamini.core.program.avals",
    "xlamini.core.hi_types": "xlamini.core.program.hi_types",
    "xlamini.core.jaxpr": "xlamini.core.program.jaxpr",
    "xlamini.core.memory_space": "xlamini.core.program.memory_space",
    "xlamini.primitives.gather_numbers": "xlamini.primitives.indexing.gather_numbers",
    "xlamini.primitives.precision": "xlamini.primitives.base.precision",
    "xlamini.runtime.array": "xlamini.runtime.arrays.array",
    "xlamini.runtime.conversions": "xlamini.runtime.arrays.conversions",
    "xlamini.runtime.keys": "xlamini.runtime.arrays.keys",
    "xlamini.runtime.layout": "xlamini.runtime.arrays.layout",
    "xlamini.staging.run.jit_options": "xlamini.staging.run.jit.jit_options",
    "xlamini.staging.run.pickling": "xlamini.staging.run.jit.pickling",
}


class _Finder:
    """Asked last, and so only for modules that are not there."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        return importlib.util.spec_from_loader(name, self) if name in _MOVED else None  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        """The import system takes what is in `sys.modules` now in place of the new module."""
        sys.modules[module.__name__] = importlib.import_module(_MOVED[module.__name__])


def install() -> None:
    """Have the import system ask for former paths."""
    sys.meta_path.append(_Finder())  # type: ignore[arg-type]
