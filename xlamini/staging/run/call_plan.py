"""The plan of one call of a jitted function."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from xlamini.core import Avals, Values
from xlamini.staging.trace.static_args import StaticArgs

if TYPE_CHECKING:
    from xlamini.staging.compile.ledger import Compilation


class CallPlan(NamedTuple):
    """One call of a jitted function: its arguments as leaves, and what the options ask for them.

    Made once, at the top, and handed to tracing, placement, lowering and the program, so that none of them asks again.
    """

    leaves: Values
    tree: Any
    names: Sequence[str]
    avals: Avals
    statics: StaticArgs | None
    """The static arguments, taken out; None for a function without."""
    positions: Sequence[int] | None
    """Where the remaining positional arguments were in the user's call; None if none was taken out."""
    in_shardings: Sequence[Any]
    """The sharding asked for each leaf, None for any; empty if nothing was asked."""
    entries: list[Compilation]
    """The entry of this call in the ledger, if it was traced and is yet to be compiled."""
    has_refs: bool = False
    """Whether a leaf is a ref; then only this field counts."""
