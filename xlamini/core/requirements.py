"""What a process must be like to import xlamini, checked before anything else: its jaxlib, and no JAX in it.

The package `core` calls `check` first, since any other of its modules may fail with another jaxlib.
"""
from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import jaxlib.version

from xlamini.core.real_jax import imported_jax, importer_of, installed_jax

LOWEST, BEYOND = (0, 10, 2), (0, 13)
_RESTART = "restart Python (in a notebook, its runtime)"


def check() -> None:
    """Raise ImportError if the process is not fit for xlamini, and refuse an `import jax` that comes later."""
    jax = imported_jax()
    if jax is not None:
        raise ImportError(_after_jax(importer_of(jax)))
    check_jaxlib(jaxlib.version.__version__, _installed_jaxlib())
    if not any(isinstance(finder, _NoJax) for finder in sys.meta_path):
        sys.meta_path.insert(0, _NoJax())


def check_jaxlib(imported: str, installed: str) -> None:
    """Raise ImportError unless the process has a supported jaxlib; pip may have installed another one since."""
    found = tuple(int(part) for part in imported.split(".") if part.isdigit())
    if LOWEST <= found < BEYOND:
        return
    if imported != installed:
        late = f"jaxlib {installed} was installed after this process had imported jaxlib {imported}"
        raise ImportError(f"{late}; {_RESTART}")
    raise ImportError(
        f"xlamini needs jaxlib >= 0.10.2 and < 0.13, but jaxlib {imported} is installed; "
        f'run: pip install "jaxlib>=0.10.2,<0.13", and {_RESTART}'
    )


def _installed_jaxlib() -> str:
    """The version beside the files of the jaxlib in the process; that of the process if pip has not installed it."""
    beside = Path(jaxlib.version.__file__).parents[1].glob("jaxlib-*.dist-info")
    return next((folder.name[len("jaxlib-") : -len(".dist-info")] for folder in beside), jaxlib.version.__version__)


def _after_jax(importer: str | None) -> str:
    by = f" by module {importer!r}" if importer else ""
    return (
        f"jax has been imported in this process{by}, and it and xlamini change the same objects of jaxlib: {_RESTART}, "
        "and leave that import out, or write `import xlamini.as_jax` above it, so that `import jax` is xlamini. To "
        "compare the two, run each in a process of its own"
    )


class _NoJax:
    """Finds the real JAX, and loads it with an error: JAX's own comes from the middle of it, and names no way out."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname != "jax" or installed_jax() is None:
            return None
        loader: Any = self
        return ModuleSpec(fullname, loader)

    def create_module(self, spec: ModuleSpec) -> None:
        raise ImportError(
            "xlamini has been imported in this process, and it and jax change the same objects of jaxlib. Write "
            "`import xlamini as jax`, or for libraries that import jax, `import xlamini.as_jax` above them. To compare "
            "with JAX, run it in a process of its own",
            name="jax",
        )

    def exec_module(self, module: ModuleType) -> None:
        """What a loader must have; `create_module` has raised an error."""
