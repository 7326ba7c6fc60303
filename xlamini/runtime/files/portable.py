"""Portable artifacts of StableHLO: bytes that all later versions of XLA can read, and earlier ones for some weeks."""
from __future__ import annotations

import io
from typing import Any

from jaxlib import _jax

from xlamini.core import LoadError


def artifact_of(module: Any) -> bytes:
    """The portable artifact of a module, readable by XLA of twelve weeks before unless it has newer operations."""
    # Imported here because MLIR's bindings take 0.1 s to import.
    from jaxlib.mlir._mlir_libs import _stablehlo

    bytecode = io.BytesIO()
    module.operation.write_bytecode(bytecode)
    # Without this the shardings would be rewritten as custom calls, which no function here reads back.
    keeps_shardy = any(op.operation.name == "sdy.mesh" for op in module.body.operations)
    requirement = _stablehlo.StablehloCompatibilityRequirement
    for least in (requirement.WEEK_12, requirement.WEEK_4):
        version = _stablehlo.get_version_from_compatibility_requirement(least)
        try:
            return _jax.mlir.serialize_portable_artifact(bytecode.getvalue(), version, keeps_shardy)
        except _jax.JaxRuntimeError:  # the module has an operation that this version lacks
            continue
    return _jax.mlir.serialize_portable_artifact(bytecode.getvalue(), _stablehlo.get_current_version(), keeps_shardy)


def module_of(artifact: bytes, context: Any) -> Any:
    """The module of a portable artifact; LoadError for other bytes, or a version that this jaxlib cannot read."""
    try:
        return _jax.mlir.deserialize_portable_artifact(artifact, context)
    except (_jax.JaxRuntimeError, ValueError) as error:
        raise LoadError(f"the StableHLO cannot be read by this jaxlib: {error}") from None
