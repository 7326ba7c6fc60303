"""Profiles of host and devices, and of the memory in use."""

from xlamini.core.api_boundary import edge_of_face as _edge_of_face
from xlamini.runtime.profiler.api import ProfileData as ProfileData
from xlamini.runtime.profiler.api import ProfileEvent as ProfileEvent
from xlamini.runtime.profiler.api import ProfileOptions as ProfileOptions
from xlamini.runtime.profiler.api import ProfilePlane as ProfilePlane
from xlamini.runtime.profiler.api import StepTraceAnnotation as StepTraceAnnotation
from xlamini.runtime.profiler.api import TraceAnnotation as TraceAnnotation
from xlamini.runtime.profiler.api import annotate_function as annotate_function
from xlamini.runtime.profiler.api import device_memory_profile as device_memory_profile
from xlamini.runtime.profiler.api import register_subprocess as register_subprocess
from xlamini.runtime.profiler.api import save_device_memory_profile as save_device_memory_profile
from xlamini.runtime.profiler.api import start_server as start_server
from xlamini.runtime.profiler.api import start_trace as start_trace
from xlamini.runtime.profiler.api import stop_server as stop_server
from xlamini.runtime.profiler.api import stop_trace as stop_trace
from xlamini.runtime.profiler.api import trace as trace

__all__ = [
    "ProfileData",
    "ProfileEvent",
    "ProfileOptions",
    "ProfilePlane",
    "StepTraceAnnotation",
    "TraceAnnotation",
    "annotate_function",
    "device_memory_profile",
    "register_subprocess",
    "save_device_memory_profile",
    "start_server",
    "start_trace",
    "stop_server",
    "stop_trace",
    "trace",
]

_edge_of_face(globals())
