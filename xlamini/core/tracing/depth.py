"""The depth of nested traces: room on Python's stack for it, and an error where it has no end.

Tracing a jitted function inside another takes some ten frames, and walks over the nested jaxprs take as many, so
Python's limit of 1,000 frames would allow a nest of 90. The limit grows with the depth and is never lowered, because it
is one for all threads.
"""

from __future__ import annotations

import sys

DEEPEST = 550
_FRAMES = 25
"""The frames that one level may take, on top of those that Python allows anyway.

At the deepest level the limit is 14,750. C code that Python's limit stops, as jaxlib's walk over a container that holds
itself, overflows a stack of 8 MB between 20,000 and 26,000.
"""


def make_room(depth: int, name: str) -> None:
    """Raise Python's recursion limit for traces nested `depth` deep; beyond `DEEPEST` RecursionError, with the name."""
    if depth > DEEPEST:
        raise RecursionError(
            f"{name or 'a function'} is traced inside {depth} others: one that calls itself is traced without end, for "
            "both sides of a condition on traced values are traced; write lax.while_loop, or make the argument "
            "that ends the recursion static"
        )
    needed = 1000 + depth * _FRAMES
    if sys.getrecursionlimit() < needed:
        sys.setrecursionlimit(needed)
