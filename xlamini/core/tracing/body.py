"""The builder of a program that takes refs: a loop's body, a branch, or a call."""
from __future__ import annotations

from xlamini.core.tracing.tracer import Builder


class BodyBuilder(Builder):
    """Captures a ref that is a variable as it captures an array: its equation may have refs among the operands."""

    __slots__ = ()
