"""The finder: `jax.a.b` is a module of the overlay if there is one, else the module `xlamini.a.b` itself.

No module is copied, so classes, patches and pickles are the same under both names. Modules in neither place are made
of the names that `tables.py` gives them.
"""
from __future__ import annotations

import importlib.util
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

import xlamini
from xlamini.as_jax.names import rename
from xlamini.as_jax.tables import is_listed, listed
from xlamini.core.former_paths import SameModule

OVERLAY = "xlamini.as_jax.overlay"
PAGE = "docs/dropin.md"
_PUBLIC = frozenset(vars(xlamini)["__all__"]) - {"extend"}  # the overlay has another one


class JaxFinder:
    """Finds `jax` and all its modules; what is not there is a ModuleNotFoundError, whatever else is installed."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname.partition(".")[0] != "jax":
            return None
        name = answer_to(fullname)
        if name is not None:
            loader: Any = _JaxModule(name, fullname)
            return ModuleSpec(fullname, loader)
        if is_made(fullname):
            loader = _MadeModule()
            return ModuleSpec(fullname, loader, is_package=True)
        raise ModuleNotFoundError(
            f"No module named {fullname!r}: xlamini answers for jax in this process and has no such module; "
            f"{PAGE} says what there is",
            name=fullname,
        )

    def find_distributions(self, context: Any) -> list[Any]:
        """What `importlib.metadata.version("jax")` asks, which a package named `jax` answers if one is installed."""
        if context.name != "jax":
            return []
        from xlamini.as_jax.distribution import JaxDistribution  # costs time, and few ask

        return [JaxDistribution()]


def answer_to(fullname: str) -> str | None:
    """The module that answers for one of JAX's, by name; None if there is none."""
    return next((name for name in [f"{OVERLAY}{fullname[len('jax') :]}", *face(fullname)] if _exists(name)), None)


def face(fullname: str) -> list[str]:
    """The module of xlamini's that has the name of one of JAX's, if that is public."""
    path = fullname.split(".")[1:]
    return [".".join(["xlamini", *path])] if not path or path[0] in _PUBLIC else []


def namesakes(fullname: str) -> list[str]:
    """The modules whose names a module of JAX's has: those of its own name, then those of the table."""
    public = [f"jax{fullname.removeprefix('jax._src')}"] if fullname.startswith("jax._src.") else face(fullname)
    return [*public, *listed(fullname)]


def is_made(fullname: str) -> bool:
    """Whether a module of JAX's is made of the names that the tables give it."""
    return is_listed(fullname) or (fullname.startswith("jax._src.") and is_there(namesakes(fullname)[0]))


def is_there(fullname: str) -> bool:
    """Whether a module of JAX's can be imported."""
    return answer_to(fullname) is not None or is_made(fullname)


def _exists(name: str) -> bool:
    if name in sys.modules:
        return True
    try:
        return importlib.util.find_spec(name) is not None
    except ModuleNotFoundError:  # its package is not there
        return False


class _JaxModule(SameModule):
    """Loads a module under the name that it has in JAX."""

    def __init__(self, name: str, jax_name: str) -> None:
        super().__init__(name)
        self.jax_name = jax_name

    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        rename(module, self.jax_name)

    def get_code(self, fullname: str) -> Any:
        """The code of the module, which `python -m jax.tools.jax_to_ir` runs."""
        loader: Any = importlib.util.find_spec(self.name).loader  # type: ignore[union-attr]
        return loader.get_code(self.name)


class _MadeModule:
    """Loads a module without a file."""

    def create_module(self, spec: ModuleSpec) -> None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        from xlamini.as_jax.missing_names import fall_through  # which imports modules by this finder

        module.__doc__ = f"`{module.__name__}`."
        module.__getattr__ = fall_through(module.__name__)  # type: ignore[attr-defined]
