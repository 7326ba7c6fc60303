"""Sharding inspection: a Python callback that the compiler calls with the sharding it has chosen for a value."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from typing import Any

from jaxlib import _hlo, _jax

from xlamini.runtime.meshes.mesh import Mesh
from xlamini.runtime.meshes.program_placement import named_sharding
from xlamini.runtime.sharding import Sharding


class Inspector:
    """The user's callback, with references to the wrappers passed to the compiler, which must stay alive."""

    def __init__(self, fun: Callable[[Sharding], Any]):
        self.fun = fun
        self._callbacks: list[Callable[[_hlo.HloSharding], None]] = []

    def of_program(self, meshes: Mapping[Mesh, str], ndim: int) -> bytes:
        """The encoded callback of an InspectSharding op; it receives a sharding over the module's first mesh."""

        def call(found: _hlo.HloSharding) -> None:
            try:
                self.fun(named_sharding(found, next(iter(meshes)), ndim))
            except Exception:  # the compiler's C++ must not see an exception
                traceback.print_exc()

        self._callbacks.append(call)
        return _jax.encode_inspect_sharding_callback(call)

    def __repr__(self) -> str:
        return repr(self.fun)
