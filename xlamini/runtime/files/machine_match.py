"""The machine that a compiled program fits, stored as JSON with the program, and the local devices that match it.

Machine code fits one version of jaxlib, one kind of device and, on a CPU, processors that have the instructions it
uses. A mismatch is an error before anything is run.
"""
from __future__ import annotations

import platform
from typing import Any, NamedTuple

import jaxlib.version

from xlamini.core import LoadError
from xlamini.core.version import __version__
from xlamini.runtime.devices import processor
from xlamini.runtime.devices.platforms import Device, default_device, local_devices


class Requirements(NamedTuple):
    """The versions and the device that a program was compiled with and for; `processor` is None except on a CPU."""

    xlamini: str
    jaxlib: str
    platform: str
    kind: str
    capability: str
    processor: dict[str, Any] | None


def requirements_of(device: Device) -> Requirements:
    """The requirements of a program compiled for a device."""
    of_cpu = {"machine": platform.machine(), "name": processor.cpu(), "instructions": processor.instruction_sets()}
    return Requirements(
        xlamini=__version__,
        jaxlib=jaxlib.version.__version__,
        platform=_platform(device),
        kind=device.device_kind,
        capability=str(getattr(device, "compute_capability", "")),
        processor=of_cpu if device.platform == "cpu" else None,
    )


def matching_devices(home: Requirements, count: int, asked: Device | None) -> list[Device]:
    """Devices that can run the program: `asked`, the default device or others; LoadError if there are too few."""
    _check_jaxlib(home)
    if home.processor:
        _check_processor(home.processor)
    if asked is not None:
        return [_checked(home, count, asked)]
    found = [d for d in _candidates(home, count) if _fits(home, d)]
    if len(found) < count:
        raise LoadError(
            f"it runs on {count} devices of {_shown(home)}, but this process has {len(found)}; compile it for that many"
        )
    return found[:count]


def _checked(home: Requirements, count: int, asked: Device) -> Device:
    if count > 1:
        raise LoadError(f"it runs on {count} devices, so no single one can be asked for; leave out device")
    if not _fits(home, asked):
        raise LoadError(f"it was compiled for {_shown(home)}, but device is {asked}; compile it for that device")
    return asked


def _check_jaxlib(home: Requirements) -> None:
    here = jaxlib.version.__version__
    if home.jaxlib != here:
        raise LoadError(
            f"it was compiled by jaxlib {home.jaxlib}, but here is jaxlib {here}; compile it again here, or keep "
            "what xlamini.export makes, which later versions can read"
        )


def _check_processor(wanted: dict[str, Any]) -> None:
    lacking = processor.lacking(wanted["machine"], wanted["instructions"])
    unknown = not wanted["instructions"] and wanted["name"] != processor.cpu()
    if lacking or unknown:  # unknown: the operating system does not list the instruction sets
        more = f" and {len(lacking) - 4} more" if len(lacking) > 4 else ""
        without = f"; this one has no {', '.join(lacking[:4])}{more}" if lacking else ""
        raise LoadError(
            f"it was compiled for another processor, {wanted['name']}{without}; compile it again here, or keep what "
            "xlamini.export makes"
        )


def _candidates(home: Requirements, count: int) -> list[Device]:
    default = default_device()
    if count == 1 and _fits(home, default):
        return [default]
    try:
        found = local_devices(backend=home.platform)
    except (RuntimeError, ValueError) as error:
        raise LoadError(f"it was compiled for {_shown(home)}, but {error}") from None
    if not any(_fits(home, d) for d in found):
        kinds = ", ".join(sorted({d.device_kind for d in found})) or "no device"
        raise LoadError(f"it was compiled for {_shown(home)}, but here is {kinds}; compile it again for that")
    return found


def _fits(home: Requirements, device: Device) -> bool:
    capability = str(getattr(device, "compute_capability", ""))
    same = (home.platform, home.kind) == (_platform(device), device.device_kind)
    return same and (not capability or not home.capability or capability == home.capability)


def _platform(device: Device) -> str:
    return "cuda" if device.platform == "gpu" else device.platform


def _shown(home: Requirements) -> str:
    kind = home.kind
    return home.platform if kind == home.platform else f"{home.platform} ({kind})"
