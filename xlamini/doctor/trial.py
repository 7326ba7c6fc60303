"""A platform's trial, in a process of its own: it is started and runs one operation.

Each step that was reached is told in a line of JSON, so that whoever waits knows where a process ended.
"""
from __future__ import annotations

import json
import time
from typing import Any

MARK = "xlamini-trial "


def tell(step: str, **facts: Any) -> None:
    """One line about a step that is done, or that failed; whatever a plugin has written stands on another."""
    print("\n" + MARK + json.dumps({"step": step, **facts}), flush=True)


def main(name: str) -> None:
    """Try everything that a program needs of a platform, in its order."""
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
