"""StableHLO as portable artifacts: bytes that later versions of XLA can read, and earlier ones for a while."""
from __future__ import annotations

import io
from typing import Any

from jaxlib import _jax

from xlamini.core.errors import LoadError


def artifact_of(module: Any) -> bytes:
    """The portable artifact of a module, for XLA of three months before where it has no newer operations."""
    # Imported here, as MLIR's bindings cost 0.1 s.
    from jaxlib.mlir._mlir_libs import _stablehlo

    written = io.BytesIO()
    module.operation.write_bytecode(written)
    requirement = _stablehlo.StablehloCompatibilityRequirement
    for least in (requirement.WEEK_12, requirement.WEEK_4):
        version = _stablehlo.get_version_from_compatibility_requirement(least)
        try:
            return _jax.mlir.serialize_portable_artifact(written.getvalue(), version)
        except _jax.JaxRuntimeError:  # an operation that this version has not
            continue
    return _jax.mlir.serialize_portable_artifact(written.getvalue(), _stablehlo.get_current_version())


def module_of(artifact: bytes, context: Any) -> Any:
    """The module of a portable artifact; LoadError for bytes that are none, or of a version not known here."""
    try:
        return _jax.mlir.deserialize_portable_artifact(artifact, context)
    except (_jax.JaxRuntimeError, ValueError) as error:
        raise LoadError(f"the StableHLO cannot be read by this jaxlib: {error}") from None
