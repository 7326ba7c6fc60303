"""Platforms, devices, placement, profiles."""

from __future__ import annotations

from typing import Any

import xlamini
from tests.support.error_rows import ones, row
from xlamini import config, profiler
from xlamini.core.flags import device_flags
from xlamini.runtime.sharding import SingleDeviceSharding

jit, device_put = xlamini.jit, xlamini.device_put
CPU = xlamini.devices("cpu")[0]


def with_flag(flag: Any, value: Any, program: Any) -> Any:
    with flag(value):
        return program()


def with_default_device(place: Any) -> Any:
    with xlamini.default_device(place):
        return ones(2) + 1


ROWS = [
    row(
        "unknown", lambda: xlamini.devices("abacus"), RuntimeError, "there is no platform 'abacus'", "cpu, cuda",
        "abacus:/",
    ),
    row(
        "flag", lambda: with_flag(device_flags.platforms, "cuda,,cpu", xlamini.devices), RuntimeError,
        "names separated by commas", "'cuda,,cpu'",
    ),
    row("process", lambda: xlamini.local_devices(process_index=3), ValueError, "there is no process 3", "is 1"),
    row(
        "plugins", lambda: with_flag(device_flags.pjrt_plugins, "new", lambda: xlamini.devices("new")), RuntimeError,
        "takes name:/path.so", "'new'",
    ),
    row(
        "plugin's path", lambda: with_flag(device_flags.pjrt_plugins, "new:/x.so", lambda: xlamini.devices("new")),
        RuntimeError, "names /x.so for platform 'new', but there is no such file", "doctor --platform new",
    ),
    row("allocator", lambda: config.update("allocator", "best"), ValueError, "'cuda_async'", "'best'"),
    row("fraction", lambda: config.update("memory_fraction", "half"), TypeError, "memory_fraction takes", "'half'"),
    row("default device", lambda: with_default_device(3), TypeError, "default_device must be a device", "got 3"),
    row("default platform", lambda: with_default_device("abacus"), RuntimeError, "there is no platform 'abacus'"),
    row("device_put", lambda: device_put(1.0, "cpu"), TypeError, "device must be a device or a sharding", "'cpu'"),
    row("prefix", lambda: device_put({"a": 1, "b": 2}, {"a": CPU}), ValueError, "device_put: ", "device", "'b'"),
    row("donate", lambda: device_put(1.0, donate=True, may_alias=True), ValueError, "cannot both be True"),
    row("memory", lambda: SingleDeviceSharding(CPU, memory_kind="attic"), ValueError, "pinned_host", "attic"),
    row("jit", lambda: jit(abs, device=CPU, backend="cpu"), ValueError, "device=CpuDevice(id=0) and backend='cpu'"),
    row("backend", lambda: jit(abs, backend="abacus")(1), RuntimeError, "there is no platform 'abacus'"),
    row("stop_trace", lambda: profiler.stop_trace(), RuntimeError, "no trace is being recorded", "start_trace"),
    row("trace", lambda: profiler.start_trace("x", profiler_options=3), TypeError, "ProfileOptions()", "got 3"),  # type: ignore[arg-type]
    row("trace's folder", lambda: profiler.start_trace(3), TypeError, "int"),  # type: ignore[arg-type]
    row("stop_server", lambda: profiler.stop_server(), ValueError, "no profiler server runs", "start_server"),
    row("annotate", lambda: profiler.annotate_function(3), TypeError, "annotate_function: func", "got 3"),  # type: ignore[arg-type]
    row("memory profile", lambda: profiler.device_memory_profile("abacus"), RuntimeError, "'abacus'"),
]
