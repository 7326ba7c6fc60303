"""The depth of nested traces: room on Python's stack for it, and an error where it has no end.

Tracing a jitted function inside another takes some ten frames, and walks over the nested jaxprs take as many, so
Python's limit of 1,000 frames would allow a nest of 90. The limit grows with the depth and is never lowered, because it
is one for all threads.
"""

from __future__ import annotations

import sys

DEEPEST = 1000
_FRAMES = 50
"""The frames that one level may take, on top of those that Python allows anyway."""


def make_room(depth: int, name: str) -> None:
    """Raise Python's recursion limit for traces nested `depth` deep; RecursionError, naming the function, at 1,000."""
    if depth > DEEPEST:
        raise RecursionError(
            f"{name or 'a function'} is traced inside {depth} others: one that calls itself is traced without end, for "
            "both sides of a condition on traced values are traced; write lax.while_loop, or make the argument "
            "that ends the recursion static"
        )
    needed = 1000 + depth * _FRAMES
    if sys.getrecursionlimit() < needed:
        sys.setrecursionlimit(needed)
