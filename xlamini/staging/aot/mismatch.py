"""Argument mismatches: how the types of a call differ from those that a function was compiled for."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from xlamini.core import Avals, ShapedArray, Values, canonicalize_dtype, first_difference
from xlamini.runtime import ArrayImpl
from xlamini.staging.trace.arguments import checked_avals, refuse_tracers
from xlamini.staging.trace.tracing import TracedCall


class Difference(NamedTuple):
    """An argument's name, its type, and the type that the function was compiled for."""

    name: str
    found: ShapedArray
    wanted: ShapedArray

    @property
    def in_shape(self) -> bool:
        """Whether the shapes differ, and not only the dtypes."""
        return self.found.shape != self.wanted.shape


def differences(
    leaves: Values, names: Sequence[str], wanted: Avals, fun_name: str
) -> list[Difference]:
    """The arguments with a different shape or dtype; an error for one that is no array, or has no value."""
    found = checked_avals(leaves, names, fun_name)
    return [
        Difference(names[i], a, b)
        for i, (a, b) in enumerate(zip(found, wanted, strict=True))
        if (a.shape, canonicalize_dtype(a.dtype, True)) != (b.shape, b.dtype)
    ]


def shown(wrong: Sequence[Difference], made: str) -> str:
    """The mismatches as text; `made` is the participle of what was done for these types, such as "compiled"."""
    return "; ".join(
        f"{name}: {made} for {wanted.str_short()}, called with {found.str_short()}" for name, found, wanted in wrong
    )


def check_arguments(call: TracedCall, leaves: Values, tree: Any) -> None:
    """TypeError, with the difference, for arguments of another structure or of other types than the call's."""
    if tree != call.in_tree:
        raise TypeError(
            f"compiled {call.name} was called with (args, kwargs) of another structure: "
            f"{first_difference(call.in_tree, tree, ('expected', 'given'))}{_without_statics(call.statics)}"
        )
    refuse_tracers(leaves, call.trace.names, call.name)
    if wrong := differences(leaves, call.trace.names, call.avals, call.name):
        raise TypeError(
            f"compiled {call.name} was called with arguments of other types: {shown(wrong, 'compiled')}; convert them, "
            "or call the jitted function, which compiles for each type"
        )


def check_shardings(call: TracedCall, leaves: Values, wanted: Sequence[Any]) -> None:
    """ValueError for a committed Array of another sharding than the call's; one that is not committed is moved.

    The sharding of an unused argument is None.
    """
    for name, x, there in zip(call.trace.names, leaves, wanted, strict=True):
        if there is None or type(x) is not ArrayImpl or not x._committed or x._sharding is there:
            continue
        if not there.is_equivalent_to(x._sharding, x.ndim):
            raise ValueError(
                f"compiled {call.name} takes {name!r} on {there}, and was called with an array on {x._sharding}; "
                "move it with xlamini.device_put, or call the jitted function, which compiles for each sharding"
            )


def _without_statics(statics: Sequence[str]) -> str:
    return f"; leave out the static arguments ({', '.join(statics)}), whose values are compiled in" if statics else ""
