"""Accelerator detection by the operating system's device files, before a plugin is started.

Starting a plugin without its device may hang for minutes or abort the process, so files are checked first. That costs
microseconds, and loads nothing except NVIDIA's driver if its device exists.
"""
from __future__ import annotations

import ctypes
import glob
import os
from collections.abc import Callable
from pathlib import Path

_NVIDIA = ("/dev/nvidia0", "/dev/nvidiactl", "/dev/dxg")
_GOOGLE = "0x1ae0"
_WITHOUT_TPU = {
    "TPU_SKIP_MDS_QUERY": "1",  # otherwise libtpu queries a metadata server for two minutes
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",  # otherwise libtpu warns; compiling for other types works nevertheless
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_LOG_DIR": "disabled",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",  # otherwise only one process of the machine can compile at a time
}


DETECTABLE = ("cuda", "tpu")
"""Platforms whose detection is reliable enough to warn if the device exists and no plugin is installed."""


def missing(platform: str) -> str | None:
    """The reason why a platform cannot work on this machine; None if there is none."""
    check = _CHECKS.get(platform)
    return check() if check else None


def prepare(platform: str) -> None:
    """Set the environment variables that a plugin's library reads while it is loaded."""
    if platform == "tpu" and _no_tpu():
        for variable, value in _WITHOUT_TPU.items():
            os.environ.setdefault(variable, value)


def _no_nvidia() -> str | None:
    if not any(os.path.exists(file) for file in _NVIDIA):
        return "there is no NVIDIA device (no /dev/nvidia0)"
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "NVIDIA's driver is not installed (no libcuda.so.1)"
    return None


def _no_tpu() -> str | None:
    if glob.glob("/dev/accel[0-9]*") or (glob.glob("/dev/vfio/[0-9]*") and _google_devices()):
        return None
    return "there is no TPU (no /dev/accel0, and no /dev/vfio/0 of Google's)"


def _google_devices() -> bool:
    vendors = glob.glob("/sys/bus/pci/devices/*/vendor")
    return any(Path(file).read_text(encoding="utf-8").strip() == _GOOGLE for file in vendors)


def _no_amd() -> str | None:
    return None if any(map(os.path.exists, ("/dev/kfd", "/dev/dxg"))) else "there is no AMD device (no /dev/kfd)"


_CHECKS: dict[str, Callable[[], str | None]] = {"cuda": _no_nvidia, "tpu": _no_tpu, "rocm": _no_amd}
