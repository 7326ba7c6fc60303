"""What `vmap(on_cond=…)` reports: the conds of which it runs all branches, as their predicates are mapped."""
from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import Literal

from xlamini.core import Axis, Dims, Equation, Jaxpr, subjaxprs, user_stacklevel
from xlamini.interpreters.batch import batch
from xlamini.transforms.cond.predicated_branch import branch_p

OnCond = Literal["select", "error", "warn"]


def check_on_cond(on_cond: OnCond) -> None:
    if on_cond not in ("select", "error", "warn"):
        raise ValueError(f"vmap: on_cond must be 'select', 'error' or 'warn', got {on_cond!r}")


def report_conds(jaxpr: Jaxpr, axis: Axis, dims: Dims, on_cond: OnCond) -> None:
    """ValueError, or a UserWarning, for each cond whose predicate is mapped if the inputs are mapped along `dims`."""
    before = set(_batched_conds(jaxpr))  # by a vmap inside, which was asked for itself
    for cond in dict.fromkeys(_batched_conds(batch(jaxpr, axis, tuple(dims))[0])):
        if cond not in before:
            _report(cond, axis, on_cond)


def _report(cond: Equation, axis: Axis, on_cond: OnCond) -> None:
    text = (
        f"vmap: the predicate of the cond at {cond.provenance.source or 'an unknown place'} is mapped, so that all "
        f"{len(cond.params['branches'])} branches run for all {axis.size} examples; give the predicate's argument "
        "in_axes=None, or loop over the examples with lax.map"
    )
    if on_cond == "error":
        raise ValueError(text)
    warnings.warn(text, UserWarning, user_stacklevel())


def _batched_conds(jaxpr: Jaxpr) -> Iterator[Equation]:
    """The conds of which a vmap made calls of all branches."""
    for eqn in jaxpr.eqns:
        cond = eqn.provenance.origin
        if eqn.primitive is branch_p and cond is not None and cond.primitive is not branch_p:
            yield cond
        for inner in subjaxprs(eqn):
            yield from _batched_conds(inner)
