"""What a type checker sees of jaxlib's profiler: the classes that public types name (core/jaxlib_types.py says why)."""

from __future__ import annotations

from jaxlib._profile_data import (
    ProfileData as ProfileData,
    ProfileEvent as ProfileEvent,
    ProfileLine as ProfileLine,
    ProfilePlane as ProfilePlane,
)
from jaxlib._profiler import (
    ProfileOptions as ProfileOptions,
    ProfilerServer as ProfilerServer,
    TraceMe as TraceMe,
    register_subprocess as register_subprocess,
)
