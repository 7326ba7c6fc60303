"""Placeholder modules named as modules of jax, for C++ code that imports attributes from jax."""

from __future__ import annotations

import sys
import threading
import types
from collections.abc import Mapping
from typing import Any

from xlamini.core.real_jax import answers
from xlamini.core.version import __version__


class Placeholders:
    """`with placeholders:` C++ finds modules with these members, given by names such as `jax._src.x`.

    If JAX is installed, C++ would load it, and JAX would overwrite xlamini's methods; if not, a failing import costs
    40 us. Where xlamini answers for jax there are none, as `import jax` in another thread must not get one. Several
    threads may be inside at once; the last to leave takes the placeholders away.
    """

    def __init__(self, members: Mapping[str, Mapping[str, Any]]):
        self._modules = {name: types.ModuleType(name) for name in ("jax", *members)}
        for name, inside in {"jax": {"__xlamini__": __version__}, **members}.items():
            vars(self._modules[name]).update(inside)
        self._lock = threading.Lock()
        self._inside = 0

    def __enter__(self) -> None:
        with self._lock:
            self._inside += 1
            if not answers(sys.modules.get("jax")):
                for name, module in self._modules.items():
                    sys.modules.setdefault(name, module)

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._take_away()

    def _take_away(self) -> None:
        for name, module in self._modules.items():
            if sys.modules.get(name) is module:
                del sys.modules[name]
