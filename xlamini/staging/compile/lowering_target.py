"""What a program is lowered for, where that is not where its arguments are: another platform, or a target."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from xlamini.runtime.devices.platforms import Device
    from xlamini.runtime.targets.topology import Target


class Elsewhere(NamedTuple):
    """A platform to lower for, of which no device need be there."""

    platform: str


def destination(fun_name: str, platforms: Sequence[str] | None, target: Target | None) -> Elsewhere | Device | None:
    """What `lower` was asked for: at most one of the two; None for neither."""
    if target is None:
        return None if platforms is None else _elsewhere(fun_name, platforms)
    if platforms is not None:
        raise ValueError("lower: a target says the platform too; leave out lowering_platforms")
    return device_of("lower", target)


def _elsewhere(fun_name: str, platforms: Sequence[str]) -> Elsewhere:
    known = ("cpu", "cuda", "rocm", "tpu")
    if isinstance(platforms, str) or len(platforms) != 1:
        raise NotImplementedError(
            f"lower: lowering_platforms must be a tuple of one platform, got {platforms!r}; lower {fun_name} for each"
        )
    if platforms[0] not in known:
        raise ValueError(f"lower: there is no platform {platforms[0]!r}; programs are lowered for {', '.join(known)}")
    return Elsewhere(platforms[0])


def device_of(what: str, target: Target) -> Device:
    """The device of a target that a program is compiled for."""
    devices = getattr(target, "devices", None)
    if not devices:
        example = 'xlamini.target("tpu:v5e:2x2")'
        raise TypeError(f"{what}: target must come from xlamini.target, as {example}, got {target!r}")
    return devices[0]
