"""Branches that read and write refs, by their values: each returns the values of all refs that any of them writes."""
from __future__ import annotations

from collections.abc import Sequence

from xlamini.core import Jaxpr, rewrite
from xlamini.interpreters.discharge import of_values
from xlamini.staging import Mask, chosen, inverse, merged


def branches_of_values(branches: Sequence[Jaxpr]) -> tuple[tuple[Jaxpr, ...], Mask]:
    """The branches of values, which first return the refs that are written, and a mask of these among the operands."""
    changes = tuple(map(any, zip(*[of_values(branch).changes for branch in branches], strict=True)))
    return tuple(returning(branch, changes) for branch in branches), changes


@rewrite
def returning(branch: Jaxpr, changes: Mask) -> Jaxpr:
    """The branch of values; a ref that others write and this one does not is returned as it was."""
    values, own = of_values(branch)
    count = sum(own)
    finals = merged(own, values.outvars[:count], chosen(values.invars, inverse(own)))
    return values.replace(outvars=[*chosen(finals, changes), *values.outvars[count:]])
