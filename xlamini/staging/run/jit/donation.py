"""Donation: the arguments whose memory a program may reuse for its outputs."""
from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

from xlamini.core import flatten, unflatten, user_stacklevel
from xlamini.core.pytree import structure
from xlamini.runtime.execution.dispatch_errors import Donated
from xlamini.staging.run.jit.call_plan import CallPlan
from xlamini.staging.trace.static_args import Selected


def donated_leaves(donate: Selected, plan: CallPlan) -> list[bool]:
    """For each leaf of a call, whether it belongs to a donated argument."""
    args, kwargs = unflatten(plan.tree, plan.leaves)
    positions = range(len(args)) if plan.positions is None else plan.positions
    parts = [(arg, position in donate.nums) for position, arg in zip(positions, args, strict=True)]
    parts += [(kwargs[name], name in donate.names) for name in sorted(kwargs)]  # the order of their leaves
    return [donated for part, donated in parts for _ in range(structure(part).num_leaves)]


def donated_arguments(donate: Selected) -> Donated | None:
    """How to find the leaves that a call donates; None if it donates none."""

    def donated(args: Sequence[Any], kwargs: dict[str, Any]) -> Sequence[Any]:
        given = [args[i] for i in donate.nums if i < len(args)]
        given += [kwargs[name] for name in donate.names if name in kwargs]
        return flatten(given)[0]

    return donated if donate else None


def warn_of_unusable(name: str, plan: CallPlan, indices: Sequence[int]) -> None:
    """Warn of donated leaves that no output can take the memory of."""
    arrays = ", ".join(f"{plan.names[i]!r} ({plan.avals[i].str_short(short_dtypes=False)})" for i in indices)
    warnings.warn(
        f"{name}: the memory of donated arguments is of no use, as no output has their shape and dtype: "
        f"{arrays}; leave them out of donate_argnums",
        UserWarning,
        user_stacklevel(),
    )
