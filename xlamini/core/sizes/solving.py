"""The values of symbolic sizes, from the shapes of arguments: `2*b + 1` is 7, so b is 3."""
from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from xlamini.core.errors import ShapeError
from xlamini.core.sizes.expression import SymbolicSize, terms_of
from xlamini.core.sizes.polynomials import Factor
from xlamini.core.sizes.values import evaluate, variables


class SizeEntry(NamedTuple):
    """A symbolic size in the shape of an argument: `size` is dimension `dimension` of argument `argument`."""

    argument: int
    dimension: int
    size: SymbolicSize


class SolutionStep(NamedTuple):
    """The value of a variable is `(entry - rest) / factor`, where other variables of `rest` are known before."""

    variable: str
    entry: SizeEntry
    rest: Any
    factor: int


class Unsolved(ValueError):
    """The shapes of a program's arguments do not determine its symbolic sizes."""


def entries_of(shapes: Iterable[Sequence[Any]]) -> list[SizeEntry]:
    """The symbolic sizes in the shapes of arguments."""
    return [
        SizeEntry(i, k, size)
        for i, shape in enumerate(shapes)
        for k, size in enumerate(shape)
        if isinstance(size, SymbolicSize)
    ]


def solution(entries: Sequence[SizeEntry]) -> list[SolutionStep]:
    """How the variables are found one after the other; Unsolved if the sizes do not determine them."""
    waiting, known, steps = list(entries), set[str](), list[SolutionStep]()
    while waiting:
        found = next((s for s in (_step(e, known) for e in waiting) if s is not None), None)
        if found is None:
            break
        steps.append(found)
        known.add(found.variable)
        waiting = [e for e in waiting if not variables(e.size) <= known]
    if waiting:
        missing = sorted(frozenset().union(*(variables(e.size) for e in waiting)) - known)
        raise Unsolved(
            f"the shapes of the arguments do not determine the symbolic size {missing[0]}, which they have only in "
            f"{', '.join(str(e.size) for e in waiting)}; pass an argument with a size such as {missing[0]} or "
            f"2*{missing[0]} + 1"
        )
    return steps


def _step(entry: SizeEntry, known: set[str]) -> SolutionStep | None:
    """The step by which the one unknown variable of a size is found; None if it is not linear in it."""
    unknown = variables(entry.size) - known
    if len(unknown) != 1:
        return None
    (name,) = unknown
    scope, terms = entry.size.scope, terms_of(entry.size)
    alone = ((Factor(name), 1),)
    if alone not in terms:
        return None
    rest = scope.polynomial({m: c for m, c in terms.items() if m != alone})
    return None if name in variables(rest) else SolutionStep(name, entry, rest, terms[alone])


def values_of(steps: Sequence[SolutionStep], size_of: Any, place: Any = lambda entry: "") -> dict[str, int]:
    """The values of the variables where `size_of(entry)` is the number that an argument has.

    ShapeError for a size that no number gives, such as 2*b for 7; it begins with the `place` of the size.
    """
    values: dict[str, int] = {}
    for step in steps:
        found = size_of(step.entry)
        value, left = divmod(found - evaluate(step.rest, values), step.factor)
        if left != 0:
            size = f"{place(step.entry)}the size {step.entry.size}"
            raise ShapeError(f"{size} is {found} for no whole number {step.variable}")
        values[step.variable] = value
    return values


class ArgumentSizes:
    """The symbolic sizes in the shapes of arguments: how their variables follow from the shapes of a call.

    `names` are those of the arguments, for errors. Unsolved if the shapes do not determine the variables.
    """

    def __init__(self, names: Sequence[str], shapes: Iterable[Sequence[Any]]):
        self.names: Sequence[str] = names
        self.entries: list[SizeEntry] = entries_of(shapes)
        self._steps = solution(self.entries)

    def values(self, given: Sequence[Sequence[int]]) -> dict[str, int]:
        """The values of the variables for arguments of the shapes `given`; ShapeError unless they fit."""
        values = values_of(self._steps, lambda e: given[e.argument][e.dimension], lambda e: f"{self._place(e)}: ")
        for entry in self.entries:
            wanted, found = evaluate(entry.size, values), given[entry.argument][entry.dimension]
            if wanted != found:
                of = self._origins(values, variables(entry.size))
                size = f"{entry.size}, which is {wanted} ({of}),"
                raise ShapeError(f"{self._place(entry)} must be {size} but it is {found}")
        for text in violations(values, self.entries[0].size.scope):
            raise ShapeError(f"the sizes do not fulfil {text}: {self._origins(values, values)}")
        return values

    def _place(self, entry: SizeEntry) -> str:
        return f"{self.names[entry.argument]}.shape[{entry.dimension}]"

    def _origins(self, values: Mapping[str, int], some: Iterable[str]) -> str:
        """The values of some variables with the places that they are from."""
        origin = {step.variable: self._place(step.entry) for step in self._steps}
        return ", ".join(f"{v} = {values[v]} by {origin[v]}" for v in sorted(some))


def violations(values: Mapping[str, int], scope: Any) -> Iterator[str]:
    """The constraints of a scope that the values of its variables do not fulfil."""
    for constraint in scope.demands(values):
        left, right = evaluate(constraint.left, values), evaluate(constraint.right, values)
        if not (left == right if constraint.sign == "==" else left >= right):
            yield constraint.text
