"""The facet `memory` of a primitive: what XLA's loops do with its operands and results, which plans of memory read.

The compiled program holds what the facet says is stored; the rest is computed inside of the loops that read it.
"""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Workspace = Callable[..., int]
"""`workspace(platform, avals, outs, **params)`: the bytes that XLA's implementation takes beside operands and results.
"""


def no_workspace(platform: str, avals: Any, outs: Any, /, **params: Any) -> int:
    return 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """What XLA's loops do with an operation: `Memory(reads=True, updates=True)`; all false for what is stored whole."""

    moves: bool = False
    """Each element of the result is one of an operand's, or a constant: a loop may compute it where it reads it."""
    reads: bool = False
    """A loop over its operands: XLA computes these inside of it where that is cheap."""
    view: bool = False
    """Its result is its operand's memory in another shape."""
    permutes: bool = False
    """Its result is its operand with the dimensions in another order, which a product reads as it lies in memory."""
    product: bool = False
    """It reads an operand that `permutes` made without a copy."""
    updates: bool = False
    """It writes into its first operand, whose memory the result takes if nothing reads the operand later."""
    divides: bool = False
    """It divides its first operand by the second one."""
    workspace: Workspace = no_workspace


STORED = Memory()
MOVED = Memory(moves=True)
READ = Memory(reads=True)
VIEWED = Memory(view=True)
