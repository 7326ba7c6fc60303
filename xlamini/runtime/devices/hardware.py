"""Is the machine there? What the operating system knows of accelerators, asked before a plugin is started.

Starting a plugin without its device may wait for minutes or end the process, so files are looked at first. That costs
microseconds, and loads nothing but NVIDIA's driver where its device is.
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
    "TPU_SKIP_MDS_QUERY": "1",  # or it asks a metadata server for two minutes
    "TPU_ACCELERATOR_TYPE": "v5litepod-4",  # or it complains; compiling for others works all the same
    "TPU_WORKER_HOSTNAMES": "localhost",
    "TPU_LOG_DIR": "disabled",
    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",  # or only one process of the machine could compile at a time
}


SEEN = ("cuda", "tpu")
"""Platforms of which the system tells surely enough to wonder why no plugin is installed."""


def missing(platform: str) -> str | None:
    """Why a platform cannot work on this machine; None if nothing speaks against it."""
    look = _LOOKS.get(platform)
    return look() if look else None


def prepare(platform: str) -> None:
    """Set what a plugin's library reads from the environment while it is loaded."""
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
    return any(Path(file).read_text().strip() == _GOOGLE for file in vendors)


def _no_amd() -> str | None:
    return None if any(map(os.path.exists, ("/dev/kfd", "/dev/dxg"))) else "there is no AMD device (no /dev/kfd)"


_LOOKS: dict[str, Callable[[], str | None]] = {"cuda": _no_nvidia, "tpu": _no_tpu, "rocm": _no_amd}
