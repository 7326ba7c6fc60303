"""Targets: accelerators to compile for without having them.

A target has compile-only devices: programs are compiled for them and never run on them. Making one loads the compiler
of its platform, which is in the PJRT plugin, and needs no such hardware.
"""
from __future__ import annotations

import difflib
import functools
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from jaxlib import _jax

from xlamini.core.errors import TargetError
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.runtime.devices.platforms import Device
from xlamini.runtime.devices.plugins import load_plugin
from xlamini.runtime.targets import gpu_targets, tpu_chips

MOST_GPUS, GPUS_OF_A_HOST = 256, 8


@dataclass(frozen=True)
class Target:
    """Devices to compile for; made by `xlamini.target`.

    Attributes:
      name: the spec it was made from, such as "tpu:v5e:2x2".
      platform: "tpu" or "cuda".
      device_kind: the device kind that PJRT reports, such as "TPU v5 lite".
      devices: compile-only devices. They have no memory and hold no arrays.
      memory: bytes of memory of a device.
      bandwidth: peak bytes a second between a device and its memory.
      peaks: peak operations a second of a device, by dtype, from the vendor's data sheet.
      clock: cycles a second of a TPU; None for a GPU.
      scratch: bytes of memory on the chip in which the compiler keeps values; 0 for a GPU.
      capability: the compute capability of an NVIDIA GPU, such as "9.0"; empty for a TPU.

    >>> v5e = Target("tpu:v5e:1x1", "tpu", "TPU v5 lite", (), 2**34, 8.19e11, {"bfloat16": 1.97e14})
    >>> round(v5e.peaks["bfloat16"] / v5e.bandwidth)  # with fewer operations a byte, memory is the limit
    241
    """

    name: str
    platform: str
    device_kind: str
    devices: tuple[Device, ...] = field(repr=False)
    memory: int
    bandwidth: float = field(repr=False)
    peaks: Mapping[str, float] = field(repr=False)
    clock: float | None = field(default=None, repr=False)
    scratch: int = field(default=0, repr=False)
    capability: str = field(default="", repr=False)

    def __repr__(self) -> str:
        count = f"{len(self.devices)} device{'s' * (len(self.devices) > 1)}"
        return f"Target({self.name!r}: {count} {self.device_kind}, {self.memory / 2**30:.4g} GiB each)"

    def __hash__(self) -> int:
        return hash(self.name)


_by_client: dict[Any, Target] = {}


@api_boundary
def target(spec: str) -> Target:
    """A target: an accelerator to compile for, which need not be present, with its compile-only devices.

    Args:
      spec: "tpu:CHIP:SLICE", such as "tpu:v5e:2x2" or "tpu:v5p:2x2x4", or "gpu:NAME", such as "gpu:h200", with a number
        of GPUs behind it if there are several: "gpu:h200:8".

    Raises:
      TargetError: there is no such chip, or it does not come in such slices; the message names the nearest one.
      PlatformError: the platform's plugin, which is its compiler, is not installed.

    `jit(f).lower(x).compile(target=t)` gives the optimized program, its cost, its memory; see docs/targets.md.

    >>> try:
    ...     xlamini.target("tpu:v5e:3x3")
    ... except xlamini.errors.TargetError as error:
    ...     print(error)
    target: there is no 'tpu:v5e:3x3': v5e does not come in slices of 3x3; the nearest is 'tpu:v5e:2x4'
    """
    if not isinstance(spec, str):
        raise TargetError(f'target: the spec must be text such as "tpu:v5e:2x2" or "gpu:h200", got {spec!r}')
    platform, _, rest = spec.strip().lower().partition(":")
    if platform not in _FAMILIES:
        known = '"tpu:v5e:2x2" or "gpu:h200"'
        raise TargetError(f"target: {spec!r} names no accelerator; write the platform first, as in {known}")
    return _FAMILIES[platform](spec, *rest.split(":"))


def target_of(device: Device) -> Target | None:
    """The target that a compile-only device belongs to; None for a real device."""
    return _by_client.get(device.client)


_AMPERE = 8
"""The first compute capability for which XLA compiles Triton's kernels, and cuDNN has attention."""


def runs_kernels(place: Any) -> bool:
    """Whether a device, here or of a target, or those of a mesh, run kernels: TPUs and newer NVIDIA GPUs do."""
    device = (*getattr(place, "devices", ()), place)[0]
    target = _by_client.get(getattr(device, "client", None))
    capability = str(getattr(device, "compute_capability", "")) if target is None else target.capability
    return place.platform == "tpu" or int(capability.partition(".")[0] or 0) >= _AMPERE


def _tpu(spec: str, name: str = "", slice_text: str = "", *more: str) -> Target:
    chip = tpu_chips.CHIPS.get(name)
    if chip is None:
        chip = tpu_chips.CHIPS[_closest(name, tpu_chips.CHIPS, "v5e")]
        example = tpu_chips.slices(chip)[1]
        known = ", ".join(tpu_chips.CHIPS)
        _no_such(spec, f"no TPU chip {name!r} (known: {known})", f"tpu:{chip.name}:{tpu_chips.shown(example)}")
    sides, text = _sides(slice_text), ":".join((slice_text, *more))
    if more or sides not in tpu_chips.slices(chip):
        nearest = tpu_chips.nearest(chip, sides or (2, 2))
        _no_such(spec, _why_no_slice(chip, _sides(text), text), f"tpu:{name}:{tpu_chips.shown(nearest)}")
    return _tpu_target(chip.name, sides)


def _sides(text: str) -> tuple[int, ...]:
    """The sides of a slice written as "2x4": (2, 4); () for malformed text."""
    parts = text.split("x")
    return tuple(map(int, parts)) if all(p.isascii() and p.isdigit() and len(p) < 6 for p in parts) else ()


def _why_no_slice(chip: tpu_chips.Chip, sides: tuple[int, ...], text: str) -> str:
    if not sides:
        return f"{text!r} is no slice, which is written by its sides"
    if len(sides) != chip.rank:
        return f"slices of {chip.name} have {chip.rank} sides, not {len(sides)}"
    return f"{chip.name} does not come in slices of {text}"


def _no_such(spec: str, why: str, nearest: str) -> NoReturn:
    raise TargetError(f"target: there is no {spec!r}: {why}; the nearest is {nearest!r}")


def _closest(name: str, known: Any, default: str) -> str:
    meant = {**dict.fromkeys(known), **{also: usual for also, usual in _ALSO_CALLED.items() if usual in known}}
    found = next(iter(difflib.get_close_matches(name, list(meant), 1, 0.4)), default)
    return meant[found] or found


_ALSO_CALLED = {"v5litepod": "v5e", "v5lite": "v5e", "v6lite": "v6e", "a100_80gb": "a100"}
"""Other vendors' names of devices, whose closest match by spelling would be the wrong device."""


@functools.cache
def _tpu_target(name: str, sides: tuple[int, ...]) -> Target:
    chip, size = tpu_chips.CHIPS[name], tpu_chips.shown(sides)
    devices = _devices("tpu", f"{name}:{size}", chip.options)
    names = "memory", "bandwidth", "peaks", "clock", "scratch"
    facts = {fact: getattr(chip, fact) for fact in names}
    return _register(f"tpu:{name}:{size}", "tpu", devices, facts)


def _gpu(spec: str, name: str = "", count: str = "1", *more: str) -> Target:
    known = gpu_targets.names()
    if name not in known:
        nearest = _closest(name, known, "h200")
        _no_such(spec, f"no GPU {name!r} (known: {', '.join(known)})", f"gpu:{nearest}")
    number = int(count) if count.isascii() and count.isdigit() and len(count) < 6 else 0
    if more or not _fits_hosts(number):
        nearest_number = min(filter(_fits_hosts, range(MOST_GPUS + 1)), key=lambda n: abs(n - number))
        why = f"GPUs come in numbers up to {GPUS_OF_A_HOST} and in multiples of that up to {MOST_GPUS}"
        _no_such(spec, why, f"gpu:{name}:{nearest_number}")
    return _gpu_target(name, number)


def _fits_hosts(number: int) -> bool:
    return 1 <= number <= GPUS_OF_A_HOST or (0 < number <= MOST_GPUS and number % GPUS_OF_A_HOST == 0)


@functools.cache
def _gpu_target(name: str, number: int) -> Target:
    gpu = gpu_targets.read(name)
    hosts = max(number // GPUS_OF_A_HOST, 1)
    devices = _devices("cuda", "", {"target_config": gpu.config, "topology": f"1x{hosts}x{number // hosts}"})
    facts = {"memory": gpu.memory, "bandwidth": gpu.bandwidth, "peaks": gpu.peaks, "capability": gpu.capability}
    return _register(f"gpu:{name}:{number}" if number > 1 else f"gpu:{name}", "cuda", devices, facts)


def _devices(platform: str, name: str, options: Mapping[str, str]) -> tuple[Device, ...]:
    load_plugin(platform)
    return tuple(_jax.get_default_c_api_topology(platform, name, dict(options))._make_compile_only_devices())


def _register(name: str, platform: str, devices: tuple[Device, ...], facts: Mapping[str, Any]) -> Target:
    made = Target(name, platform, devices[0].device_kind, devices, **facts)
    _by_client[devices[0].client] = made
    return made


_FAMILIES = {"tpu": _tpu, "gpu": _gpu, "cuda": _gpu}
