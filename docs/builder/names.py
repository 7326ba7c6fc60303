"""The public modules, and the names of each."""

from __future__ import annotations

import inspect
from pathlib import Path
from types import ModuleType
from typing import Any

import xlamini
from xlamini.core.stubs import read_stub


def public_modules() -> dict[str, ModuleType]:
    """Every public module by its name: `xlamini`, and each module that a public module names."""
    found: dict[str, ModuleType] = {}
    queue = [xlamini]
    while queue:
        module = queue.pop()
        found[module.__name__] = module
        members = [getattr(module, name) for name in _exported(module)]
        queue += [m for m in members if isinstance(m, ModuleType) and m.__name__ not in found]
    return dict(sorted(found.items()))


def names_of(module: ModuleType) -> list[str]:
    """The public names of a module that are no modules themselves, without regard to case in their order."""
    return sorted((n for n in _exported(module) if not isinstance(getattr(module, n), ModuleType)), key=str.lower)


def sources_of(module: ModuleType) -> dict[str, str]:
    """The module that defines each name, as the stub says; empty where there is no stub."""
    stub = Path(str(module.__file__)).with_suffix(".pyi")
    return read_stub(stub.read_text()) if stub.exists() else {}


def is_value(member: Any) -> bool:
    """Whether a public name is a plain value, such as a number, which has the docstring of its type alone."""
    return type(member).__module__ == "builtins" and not inspect.isroutine(member) and not inspect.isclass(member)


def _exported(module: ModuleType) -> list[str]:
    """`__all__`, or else what the module itself defines."""
    own = (name for name, member in vars(module).items() if getattr(member, "__module__", None) == module.__name__)
    return getattr(module, "__all__", None) or [name for name in own if not name.startswith("_")]
