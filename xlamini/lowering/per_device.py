"""The lowering of a program for one device of a mesh, which XLA's partitioner puts into the program of all."""
from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

import numpy as np

from xlamini.core import Jaxpr
from xlamini.lowering.fusion_cuts import cut
from xlamini.lowering.module import ModuleBuilder, identifier
from xlamini.lowering.specialize import specialize_part


def lower_per_device(jaxpr: Jaxpr, name: str, platform: str, mesh: Any, constants: Sequence[np.ndarray] = ()) -> bytes:
    """The module, as bytecode, whose `main` computes `jaxpr` on shards; all axes of the mesh are manual.

    The first inputs of `jaxpr` are the constants. NotImplementedError for a program that calls Python functions.
    """
    builder = ModuleBuilder(identifier(name), platform)
    builder.mesh = mesh
    builder.manual, builder.manual_axes, builder.spans_devices = mesh, frozenset(mesh.axis_names), False
    specialized = specialize_part(jaxpr, builder.platforms)
    if platform == "cpu":
        specialized = cut(specialized)
    builder.define(specialized, builder.unused("main"), name, "", "public", constants=constants)
    if builder.host_callbacks:
        raise NotImplementedError(f"{name}: a function of shards cannot call Python functions; call them outside it")
    written = io.BytesIO()
    builder.module.operation.write_bytecode(written)
    return written.getvalue()
