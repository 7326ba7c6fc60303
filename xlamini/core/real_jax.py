"""The real JAX, which cannot share a process: it sets its own methods on jaxlib's array class.

Modules called `jax` that are xlamini's have an attribute `__xlamini__`, and are not meant here. One of them answers
for all modules of jax, that of xlamini.as_jax; the module of the wheel does not, which only imports the former.
"""
from __future__ import annotations

import sys
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

_ANSWER = "xlamini.as_jax"
"""What answers for `jax`; the package `jax` that `python -m xlamini jax-wheel` makes imports it."""

CHILDREN = Path(__file__).parent.parent / "as_jax/children"
"""A folder with a package `jax` that imports what answers."""

_NOT_USERS = ("jax", "jaxlib", "xlamini")


def imported_jax() -> ModuleType | None:
    """JAX, if this process has imported it."""
    found = sys.modules.get("jax")
    return None if found is None or hasattr(found, "__xlamini__") else found


def answers(jax: ModuleType | None) -> bool:
    """Whether the modules of this `jax` are xlamini's: not those of a placeholder or of the wheel, which has none."""
    return getattr(jax, "__name__", "").startswith(_ANSWER)


def installed_jax() -> str | None:
    """The file of a JAX that could be imported."""
    spec = PathFinder.find_spec("jax")
    if spec is None or spec.origin is None or spec.loader is None:
        return None
    loader: Any = spec.loader
    return None if _ANSWER.encode() in loader.get_data(spec.origin) else spec.origin


def importer_of(jax: ModuleType) -> str | None:
    """The name of a module that imported JAX, if a variable of it says so; of several, the one that did so first.

    Modules are listed in the order in which their imports ended, but for those still being imported: they come first.
    """
    names = list(sys.modules)
    after = names.index("jax") if "jax" in names else 0
    found = (name for name in names[after:] + names[:after][::-1] if _refers_to(name, jax))
    return next(found, None)


def _refers_to(name: str, jax: ModuleType) -> bool:
    if name.partition(".")[0] in _NOT_USERS:
        return False
    variables = list(getattr(sys.modules.get(name), "__dict__", {}).values())
    return any(value is jax or _is_of_jax(value) for value in variables)


def _is_of_jax(value: Any) -> bool:
    """Whether a value is one of JAX's modules, functions or classes."""
    name = getattr(value, "__name__" if isinstance(value, ModuleType) else "__module__", None)
    return isinstance(name, str) and (name == "jax" or name.startswith("jax."))
