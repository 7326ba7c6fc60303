"""DLPack's numbers for devices: (1, 0) is the host's memory, (2, n) the n-th CUDA device, (10, n) the n-th of ROCm."""
from __future__ import annotations

from typing import Any

from xlamini.runtime.devices.platforms import Device, local_devices
from xlamini.runtime.to_device import copy_of, device_put_value

CPU, CUDA, CUDA_HOST, ROCM, CUDA_MANAGED = 1, 2, 3, 10, 13
ON_HOST = (CPU, CUDA_HOST)
"""Kinds of memory that the host reads without a stream."""

_PLATFORMS = {CPU: "cpu", CUDA_HOST: "cpu", CUDA: "cuda", CUDA_MANAGED: "cuda", ROCM: "rocm"}
_KINDS = {"cpu": CPU, "cuda": CUDA, "gpu": CUDA, "rocm": ROCM}


def dlpack_device(device: Device) -> tuple[int, int]:
    """The numbers of a device; BufferError for one that DLPack does not know."""
    kind = _KINDS.get(device.platform)
    if kind is None:
        raise BufferError(f"DLPack does not know devices of platform {device.platform!r}; device_put it on the CPU")
    return kind, 0 if kind == CPU else device.local_hardware_id


def device_of(kind: int, number: int) -> Device | None:
    """The device here that has these numbers; None if there is none."""
    platform = _PLATFORMS.get(kind)
    try:
        found = local_devices(backend=platform) if platform else []
    except (RuntimeError, ValueError):  # a platform that is not here
        found = []
    on_cpu = platform == "cpu"
    return next((d for d in found if on_cpu or d.local_hardware_id == number), None)


def given_away(x: Any, dl_device: tuple[int, int] | None, copy: bool | None) -> tuple[Any, bool]:
    """The array whose memory is given away for `x`, and whether it is a copy; BufferError if it cannot be there."""
    if dl_device is None or tuple(map(int, dl_device)) == x.__dlpack_device__():
        return (copy_of(x), True) if copy else (x, False)
    here = f"dl_device={tuple(dl_device)}, but the array is on {x.__dlpack_device__()}"
    if copy is False:
        raise BufferError(f"{here}, and copy=False; leave out copy")
    device = device_of(*map(int, dl_device))
    if device is None:
        raise BufferError(f"{here}, and there is no such device here")
    return device_put_value(x, device), True
