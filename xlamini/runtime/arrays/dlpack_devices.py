"""Devices in DLPack's terms: (1, 0) is host memory, (2, n) the n-th CUDA device, (10, n) the n-th ROCm device."""
from __future__ import annotations

from typing import Any

from xlamini.runtime.arrays.to_device import copy_of, device_put_value
from xlamini.runtime.devices.platforms import Device, local_devices

CPU, CUDA, CUDA_HOST, ROCM, CUDA_MANAGED = 1, 2, 3, 10, 13
ON_HOST = (CPU, CUDA_HOST)
"""The device types whose memory the host reads without a stream."""

_PLATFORMS = {CPU: "cpu", CUDA_HOST: "cpu", CUDA: "cuda", CUDA_MANAGED: "cuda", ROCM: "rocm"}
_KINDS = {"cpu": CPU, "cuda": CUDA, "gpu": CUDA, "rocm": ROCM}


def dlpack_device(device: Device) -> tuple[int, int]:
    """The DLPack type and id of a device; BufferError if DLPack has no such device type."""
    kind = _KINDS.get(device.platform)
    if kind is None:
        raise BufferError(f"DLPack does not know devices of platform {device.platform!r}; device_put it on the CPU")
    return kind, 0 if kind == CPU else device.local_hardware_id


def device_of(kind: int, number: int) -> Device | None:
    """The local device with this DLPack type and id; None if there is none."""
    platform = _PLATFORMS.get(kind)
    try:
        found = local_devices(backend=platform) if platform else []
    except (RuntimeError, ValueError):  # the platform is not available
        found = []
    on_cpu = platform == "cpu"
    return next((d for d in found if on_cpu or d.local_hardware_id == number), None)


def exportable(x: Any, dl_device: tuple[int, int] | None, copy: bool | None) -> tuple[Any, bool]:
    """The array to export for `x`, and whether it is a copy; BufferError if the requested device is unavailable."""
    if dl_device is None or tuple(map(int, dl_device)) == x.__dlpack_device__():
        return (copy_of(x), True) if copy else (x, False)
    here = f"dl_device={tuple(dl_device)}, but the array is on {x.__dlpack_device__()}"
    if copy is False:
        raise BufferError(f"{here}, and copy=False; leave out copy")
    device = device_of(*map(int, dl_device))
    if device is None:
        raise BufferError(f"{here}, and there is no such device here")
    return device_put_value(x, device), True
