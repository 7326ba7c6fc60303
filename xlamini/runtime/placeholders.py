"""Placeholder modules named as modules of jax, for C++ code that imports attributes from jax."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Mapping
from typing import Any


def placeholders(members: Mapping[str, Mapping[str, Any]]) -> dict[str, types.ModuleType]:
    """Modules with these members, by names such as `jax._src.x`, and their parent packages."""
    made: dict[str, types.ModuleType] = {}
    for name, inside in members.items():
        _module(name, made).__dict__.update(inside)
    return made


def _module(name: str, made: dict[str, types.ModuleType]) -> types.ModuleType:
    """The module of a name, made on first use, and set as an attribute of its package."""
    if name not in made:
        made[name] = types.ModuleType(name)
        package, _, last = name.rpartition(".")
        if package:
            holder = _module(package, made)
            holder.__path__ = []
            setattr(holder, last, made[name])
    return made[name]


def call_with_modules(modules: Mapping[str, types.ModuleType], function: Callable[..., Any], *args: Any) -> Any:
    """Call `function(*args)` while these modules are in `sys.modules`, in place of others of the same names.

    Several threads may do so at once: another thread's placeholders are not restored as originals.
    """
    hidden = {name: sys.modules[name] for name, own in modules.items() if sys.modules.get(name, own) is not own}
    sys.modules.update(modules)
    try:
        return function(*args)
    finally:
        for name in modules:
            sys.modules.pop(name, None)
        sys.modules.update(hidden)
