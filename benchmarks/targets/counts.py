"""What a compiled program costs on a device, as XLA's compilers say, and how two programs compare."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Counts:
    """The counts of one compiled program; 0 cycles where the compiler estimates none.

    Loops count with their trips in `cycles` and `kernels`. `memory` is arguments, results and temporaries. `products`
    has the operand dtypes of matrix products and convolutions, and how many there are of each.
    """

    cycles: int
    kernels: int
    bytes: float
    memory: int
    products: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Comparison:
    """The counts of a program for a target, by library; an error's text in place of those that are missing."""

    program: str
    target: str
    counts: dict[str, Counts | str]

    @property
    def speed(self) -> str:
        """The count that says most about the time: cycles on a TPU, kernels on a GPU, where XLA estimates none."""
        return "cycles" if self.target.startswith("tpu") else "kernels"

    def ratio(self, what: str) -> float | None:
        """xlamini's count divided by JAX's; None if either is missing. What both have none of is equal."""
        ours, theirs = (getattr(self.counts[library], what, None) for library in ("xlamini", "jax"))
        if ours is None or theirs is None:
            return None
        return ours / theirs if theirs else 1.0 if not ours else float("inf")

    @property
    def errors(self) -> dict[str, str]:
        """Why a library has no counts."""
        return {library: found for library, found in self.counts.items() if isinstance(found, str)}


def failure(error: Exception) -> dict[str, Any]:
    """An error as a worker reports it: its first line."""
    return {"error": f"{type(error).__name__}: {error}".splitlines()[0]}
