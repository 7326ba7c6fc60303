"""What lints find, as values that print well."""
from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

from xlamini.analysis.places import EquationLocation, place_of
from xlamini.core import Equation
from xlamini.core.errors.frames import definition


class Finding(NamedTuple):
    """A place in the user's program, what is odd there, how many times too much it costs (if known), and the edit."""

    place: EquationLocation
    message: str
    fix: str
    ratio: float | None = None
    rule: str = ""

    def __str__(self) -> str:
        name = f" ({self.place.variable})" if self.place.variable else ""
        return f"{self.place}\n    {self.rule}{name}: {self.message}\n    {self.fix}"

    def as_dict(self) -> dict[str, Any]:
        return {**self._asdict(), "place": self.place.as_dict()}


class Findings(NamedTuple):
    """The answer of `lint`: false if nothing was found."""

    found: list[Finding]

    def __bool__(self) -> bool:
        return bool(self.found)

    def __repr__(self) -> str:
        return "\n".join(map(str, self.found)) or "nothing found"

    def as_dict(self) -> dict[str, Any]:
        return {"found": [finding.as_dict() for finding in self.found]}


def finding(where: Equation | EquationLocation, message: str, fix: str, ratio: float | None = None) -> Finding:
    """A finding of a rule, at an equation of the program or at a place; `fix` is one edit, in a sentence.

    >>> from xlamini.debug import finding, lint_rule
    >>> @lint_rule
    ... def sines(program):
    ...     for body, eqn in program.equations():
    ...         if eqn.primitive.name == "sin":
    ...             yield finding(eqn, "a sine", "Look it up in a table.", ratio=2.0)
    >>> found = xlamini.lint(jnp.sin, rules=["sines"])(1.0).found[0]
    >>> found.message, found.fix, found.ratio, found.rule
    ('a sine', 'Look it up in a table.', 2.0, 'sines')
    >>> del xlamini.debug.lint_rules["sines"]
    """
    return Finding(place_of(where) if isinstance(where, Equation) else where, message, fix, ratio)


def definition_of(f: Callable[..., Any]) -> EquationLocation:
    """The place where a function is defined."""
    file, line = definition(inspect.unwrap(f))
    return EquationLocation(file, line, getattr(f, "__qualname__", "?"), "", None, "argument")


def size_text(count: float) -> str:
    """A number of bytes in words: `4.0 MB`."""
    for unit in ("bytes", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"
