"""Former paths: pickles name modules by the path at which an earlier version had them, before they lay in rooms."""

from __future__ import annotations

import importlib
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

_WITH_ROOMS = {"xlamini.core", "xlamini.primitives", "xlamini.runtime", "xlamini.staging.run"}


class _Finder:
    """Asked last, and so only for modules that are not there: `core.avals` is `core.program.avals`."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        package, _, module = name.rpartition(".")
        rooms = Path(path[0]).glob(f"*/{module}.py") if package in _WITH_ROOMS else ()
        loader: Any = next((SameModule(f"{package}.{file.parent.name}.{module}") for file in rooms), None)
        return loader and ModuleSpec(name, loader)


class SameModule:
    """Loads a module that is there under another name: no copy of it, so that classes and pickles are the same."""

    spec: ModuleSpec | None

    def __init__(self, name: str) -> None:
        self.name = name

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self.name)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self.spec


def install() -> None:
    """Have the import system ask for former paths."""
    finder: Any = _Finder()
    sys.meta_path.append(finder)
