"""Asking the compiler where it has a value of a program: by a Python function that it calls when it knows."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Mapping
from typing import Any

from jaxlib import _hlo, _jax

from xlamini.runtime.meshes.mesh import Mesh
from xlamini.runtime.meshes.program_placement import named_sharding
from xlamini.runtime.sharding import Sharding


class Inspector:
    """The user's function; and those made of it that compilers call, which live as long as it does."""

    def __init__(self, fun: Callable[[Sharding], Any]):
        self.fun = fun
        self._called: list[Callable[[_hlo.HloSharding], None]] = []

    def of_program(self, meshes: Mapping[Mesh, str], ndim: int) -> bytes:
        """What an InspectSharding operation says to call, with a sharding over the first mesh of its module."""

        def call(found: _hlo.HloSharding) -> None:
            try:
                self.fun(named_sharding(found, next(iter(meshes)), ndim))
            except Exception:  # which the compiler's C++ does not expect
                traceback.print_exc()

        self._called.append(call)
        return _jax.encode_inspect_sharding_callback(call)

    def __repr__(self) -> str:
        return repr(self.fun)
