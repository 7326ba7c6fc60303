"""The finder: `jax.a.b` is a module of the overlay if there is one, else the module `xlamini.a.b` itself.

No module is copied, so classes, patches and pickles are the same under both names.
"""
from __future__ import annotations

import importlib
import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import xlamini

OVERLAY = "xlamini.as_jax.overlay"
PAGE = "docs/dropin.md"
_PUBLIC = frozenset(vars(xlamini)["__all__"])


class JaxFinder:
    """Finds `jax` and all its modules; what is not there is a ModuleNotFoundError, whatever else is installed."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname.partition(".")[0] != "jax":
            return None
        name = answer_to(fullname)
        if name is None:
            raise ModuleNotFoundError(
                f"No module named {fullname!r}: xlamini answers for jax in this process and has no such module; "
                f"{PAGE} says what there is",
                name=fullname,
            )
        loader: Any = _SameModule(name)
        return ModuleSpec(fullname, loader)

    def find_distributions(self, context: Any) -> list[Any]:
        """What `importlib.metadata.version("jax")` asks, which a package named `jax` answers if one is installed."""
        if context.name != "jax":
            return []
        from xlamini.as_jax.distribution import JaxDistribution  # costs time, and few ask

        return [JaxDistribution()]


def answer_to(fullname: str) -> str | None:
    """The module that answers for one of JAX's, by name; None if there is none."""
    inside = fullname[len("jax") :]
    first = inside.split(".")[1] if inside else ""
    faces = [f"xlamini{inside}"] if first in _PUBLIC else []
    return next((name for name in [f"{OVERLAY}{inside}", *faces] if _exists(name)), None)


def _exists(name: str) -> bool:
    if name in sys.modules:
        return True
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # its package is not there
        return False


class _SameModule:
    """Loads a module under a second name. The import system sets `__spec__`, which stays that of the first name."""

    def __init__(self, name: str):
        self._name = name

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self._name)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec
