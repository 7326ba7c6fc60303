"""The trial of a platform, run in a subprocess: it starts the platform and runs one operation.

Each completed step is printed as a line of JSON, so that the parent process knows how far a crashed trial came.
"""
from __future__ import annotations

import json
import time
from typing import Any

MARK = "xlamini-trial "


def tell(step: str, **facts: Any) -> None:
    """Print one line about a completed or failed step, separate from a plugin's own output."""
    print("\n" + MARK + json.dumps({"step": step, **facts}), flush=True)


def main(name: str) -> None:
    """Try all that a program needs of a platform, in order."""
    try:
        _try(name)
    except Exception as error:
        tell("error", text=" ".join(str(error).split()), kind=type(error).__name__)


def _try(name: str) -> None:
    import xlamini
    from xlamini.runtime.devices import nvidia, plugins
    from xlamini.runtime.devices.clients import start
    from xlamini.runtime.devices.pjrt_version import plugin_version

    tell("import")
    if name != "cpu":
        tell("load", api=plugin_version(plugins.load_plugin(name)))
    if name == "cuda":
        nvidia.load_libraries()
        tell("libraries", found=[(f.library.name, f.version, f.built_for, f.fits) for f in nvidia.versions()])
    client = start(name)
    device = client.local_devices()[0]
    kinds = [memory.kind for memory in device.addressable_memories()]
    tell("client", devices=client.device_count(), kind=device.device_kind, version=client.platform_version, kinds=kinds)
    began = time.perf_counter()
    values = xlamini.device_put(xlamini.numpy.arange(4.0), device)
    total = float(xlamini.jit(lambda x: (x * x).sum())(values))
    tell("run", right=total == 14.0, seconds=time.perf_counter() - began, memory=device.memory_stats())
