"""Differences between the supported versions of jaxlib.

The rest of the library calls these functions and never checks a version.
"""

from __future__ import annotations

import platform
import sys
from functools import partial
from typing import Any

import jaxlib.version
from jaxlib import _jax, _profiler

JAXLIB: str = jaxlib.version.__version__

export_to_xprof: Any = getattr(_profiler, "export_to_xprof", None)
"""Write a `ProfileData` to a folder; jaxlib 0.10 writes sessions only."""

_makes_array = _jax.array_result_handler
# jaxlib 0.10 calls a Python method on the new array unless an argument says to skip it.
_takes_skip_checks = "_skip_checks" in (_makes_array.__doc__ or "")
array_result_handler: Any = partial(_makes_array, _skip_checks=True) if _takes_skip_checks else _makes_array
"""The handler that makes an Array of one output of an executable, from its aval, sharding and committed flag."""


def dlpack_capsule(x: Any, stream: Any, max_version: tuple[int, int] | None, copied: bool) -> Any:
    """A DLPack capsule of an array; jaxlib 0.10 makes unversioned ones only."""
    if _takes_max_version:
        return _jax.buffer_to_dlpack_managed_tensor(x, stream, max_version, copied)
    return _jax.buffer_to_dlpack_managed_tensor(x, stream)


_takes_max_version = "max_version" in (_jax.buffer_to_dlpack_managed_tensor.__doc__ or "")

# The DLPack version requested from other libraries: only versioned capsules can mark memory as read-only.
DLPACK_VERSION: tuple[int, int] | None = (1, 0) if _takes_max_version else None

# The exception types of a failed call on the fast path: ValueError in jaxlib 0.10, later JaxRuntimeError.
DISPATCH_ERRORS: tuple[type[Exception], ...] = (_jax.JaxRuntimeError, ValueError)

# Without its newer emitters XLA compiles for the CPU in half the time; from jaxlib 0.11 on it has no others.
FAST_ON_CPU = {"xla_cpu_use_fusion_emitters": False} if jaxlib.version.__version_info__ < (0, 11) else {}

# XLA's default without convolutions, which are then Eigen's. On other systems the default is another.
_IS_X86_LINUX = sys.platform == "linux" and platform.machine() == "x86_64"
_PRODUCTS_AND_SUMS = "LIBRARY_FUSION_TYPE_INDIVIDUAL_DOT,LIBRARY_FUSION_TYPE_REDUCE"
EIGEN_CONVOLUTIONS = {"xla_cpu_experimental_ynn_fusion_type": _PRODUCTS_AND_SUMS} if _IS_X86_LINUX else {}

BUILD_OPTIONS = frozenset(dir(_jax.ExecutableBuildOptions))  # the class: an object would read XLA_FLAGS at import
"""The options that XLA does not take by name, besides others; jaxlib 0.12 has levels of effort, but no numbers."""

# Whether YNNPACK divides a convolution of small images with few features among threads.
YNNPACK_SPLITS_IMAGES: bool = jaxlib.version.__version_info__ >= (0, 11)
