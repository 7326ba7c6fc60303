"""Specs of values of users' types: a `HiPspec` says how each array is split, the type's methods what a shard's type is.

P() says of any value that it is whole on each device.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core import Params, PartitionSpec, ShapedArray, ShardingError
from xlamini.core.program.hi_types import HiAval, as_aval, lo_types
from xlamini.runtime.meshes.mesh import AnyMesh
from xlamini.transforms.shard_map.manual_axes import manual_axes

OfArray = Callable[[ShapedArray, PartitionSpec], ShapedArray]


def is_hi_spec(spec: Any) -> bool:
    """Whether it is a user's spec: an instance of `HiPspec`."""
    return getattr(type(spec), "is_hi_pspec", False)


def lo_specs(spec: Any) -> list[PartitionSpec]:
    """The specs of the arrays that a value is made of; for the spec of an array, itself."""
    return [lo for part in spec.to_lo() for lo in lo_specs(part)] if is_hi_spec(spec) else [spec]


def axes_of(spec: Any) -> frozenset[Any]:
    """The axes along which a value is split."""
    return frozenset(name for lo in lo_specs(spec) for name in lo.axes)


def check_spec_of(spec: Any, aval: ShapedArray, what: str) -> None:
    """TypeError for a spec of another kind of value."""
    if type(aval) is not HiAval and is_hi_spec(spec):
        raise TypeError(f"shard_map: {what} of type {aval.str_short()} is an array, but has the spec {spec!r}; write P")
    if type(aval) is HiAval and not is_hi_spec(spec) and spec.axes:
        raise TypeError(
            f"shard_map: {what} is of the type {aval}, whose arrays {spec} does not tell apart; write a HiPspec for "
            "it, or P() if it is whole on each device"
        )


def local_hi(aval: HiAval, spec: Any, params: Params, of_array: OfArray) -> ShapedArray:
    """The type of one device's shard, by the user's `shard`; `of_array` is that conversion for an array."""
    if not is_hi_spec(spec):
        return aval
    with manual_axes(params):
        found = as_aval(aval.ty.shard(params["mesh"], params["manual"], params["check_vma"], spec))
        _check_parts("shard", aval, found, spec, of_array)
    return found.varying(aval.vma | axes_of(spec))


def global_hi(
    aval: HiAval, mesh: AnyMesh, manual: frozenset[Any], check_vma: bool, spec: Any, of_array: OfArray
) -> ShapedArray:
    """The type of the global value, by the user's `unshard`."""
    outside = aval.vma - manual
    if not is_hi_spec(spec):
        return aval.varying(outside)
    found = as_aval(aval.ty.unshard(mesh, check_vma, spec))
    _check_parts("unshard", aval, found, spec, of_array)
    return found.varying(outside)


def _check_parts(method: str, before: HiAval, after: ShapedArray, spec: Any, of_array: OfArray) -> None:
    """ShardingError unless the method of the type and its spec say the same of each array."""
    parts, found, specs = lo_types(before), lo_types(after), lo_specs(spec)
    check_count(before, len(parts), spec)
    due = [of_array(part, lo) for part, lo in zip(parts, specs, strict=True)]
    if [a.shape for a in due] != [a.shape for a in found]:
        raise ShardingError(
            f"shard_map: {method} of the type {before.ty} returns {after}, made of {_shown(found)}, but by {spec!r} "
            f"its arrays become {_shown(due)}; make the two agree"
        )


def repeat_specs(specs: Sequence[Any], counts: Sequence[int]) -> tuple[PartitionSpec, ...]:
    """The specs of the arrays of some values, `counts[i]` of value i."""
    pairs = zip(specs, counts, strict=True)
    return tuple(lo for spec, count in pairs for lo in (lo_specs(spec) if is_hi_spec(spec) else [spec] * count))


def check_count(aval: Any, count: int, spec: Any) -> None:
    """ShardingError unless the spec has an entry for each of the `count` arrays of a value."""
    if len(lo_specs(spec)) != count:
        raise ShardingError(
            f"shard_map: to_lo of {spec!r} has {len(lo_specs(spec))} specs, but a value of type {aval} is made of "
            f"{count} arrays; return one for each"
        )


def _shown(avals: list[ShapedArray]) -> str:
    return ", ".join(map(ShapedArray.str_short, avals)) or "nothing"
