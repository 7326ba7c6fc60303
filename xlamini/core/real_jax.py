"""The real JAX, which cannot share a process: it sets its own methods on jaxlib's array class.

Modules that answer for `jax` (xlamini.as_jax) have an attribute `__xlamini__`, and are not meant here.
"""
from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from types import ModuleType
from typing import Any

_ANSWER = b"xlamini.as_jax"
"""What the package `jax` imports that `python -m xlamini jax-wheel` makes."""


def imported_jax() -> ModuleType | None:
    """JAX, if this process has imported it."""
    found = sys.modules.get("jax")
    return None if found is None or hasattr(found, "__xlamini__") else found


def installed_jax() -> str | None:
    """The file of a JAX that could be imported."""
    spec = PathFinder.find_spec("jax")
    if spec is None or spec.origin is None or spec.loader is None:
        return None
    loader: Any = spec.loader
    return None if _ANSWER in loader.get_data(spec.origin) else spec.origin


def importer_of(jax: ModuleType) -> str | None:
    """The name of the module that imported JAX first, if one of its variables says so.

    Modules are listed in the order in which their imports began, so it is the last one before JAX that refers to it.
    """
    names = list(sys.modules)
    before = names[: names.index("jax")] if "jax" in names else names
    found = (name for name in reversed(before) if _refers_to(sys.modules[name], jax))
    return next(found, None)


def _refers_to(module: ModuleType, jax: ModuleType) -> bool:
    return any(value is jax or _is_of_jax(value) for value in list(getattr(module, "__dict__", {}).values()))


def _is_of_jax(value: Any) -> bool:
    """Whether a value is one of JAX's modules, functions or classes."""
    name = getattr(value, "__name__" if isinstance(value, ModuleType) else "__module__", None)
    return isinstance(name, str) and (name == "jax" or name.startswith("jax."))
