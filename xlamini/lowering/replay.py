"""Recipes: the operations that a lowering rule emitted for one equation, replayed for later equations of its kind.

While a rule runs, a `Tape` records the operations that it creates. Values are numbered: first the operands, then block
arguments and results in order of creation. A rule with another side effect, such as a new function in the module,
invalidates the tape.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from jaxlib.mlir import ir

from xlamini.core import Atom, Jaxpr, ShapedArray, Var
from xlamini.core.program.jaxpr import EquationKind

Value = Any


class EmittedOperation(NamedTuple):
    """An operation; `operands` are value numbers, `bodies` the blocks of its regions."""

    name: str
    operands: Sequence[int]
    types: Sequence[ir.Type]
    attributes: dict[str, ir.Attribute] | None
    bodies: Sequence[RecipeBlock]


class Constant(NamedTuple):
    """A constant: the block's existing constant for this key, or a new one."""

    key: tuple[Any, ...]
    array: Any
    aval: ShapedArray


class FunctionCall(NamedTuple):
    """A call of a module function that implements part of the equation."""

    jaxpr: Jaxpr
    operands: Sequence[int]
    name: str
    noinline: bool


class RecipeBlock(NamedTuple):
    """A block: the types of its arguments, and its operations."""

    types: list[ir.Type]
    steps: list[EmittedOperation | Constant | FunctionCall]


class Recipe(NamedTuple):
    """The steps that a rule emitted, and the value numbers of its results."""

    steps: Sequence[EmittedOperation | Constant | FunctionCall]
    results: Sequence[int]


def recipe_key(kind: EquationKind, atoms: Sequence[Atom]) -> Any:
    """What a rule depends on: the kind, the literals, and which operands are one variable."""
    if len(atoms) == 1:
        return kind
    numbers: dict[Var, int] = {}
    return kind, *[numbers.setdefault(a, len(numbers)) if type(a) is Var else a for a in atoms]


class Tape:
    """The recorder of the operations that a rule emits."""

    def __init__(self, atoms: Sequence[Atom], operands: Sequence[Value]):
        self.forbidden = False
        """Whether the rule did something that cannot be replayed."""
        self._numbers: dict[int, int] = {}
        self._values = list(operands)  # referenced, so that no new value reuses the id of one of them
        self._constants: dict[int, RecipeBlock] = {}
        self._body = RecipeBlock([], [])
        for i, x in enumerate(operands):
            self._numbers[id(x)] = i
        # Two variables with one value here may have two values in the next equation.
        self._invalid = len(self._numbers) < len(set(atoms))

    def constant(self, step: Constant, value: Value) -> None:
        """Record a constant that the rule requested; the block may have had it already."""
        if self._constants.get(id(value)) is self._body:
            return
        if id(value) in self._constants:  # recorded in another block, which may not hold it at the next replay
            del self._numbers[id(value)]
        self._constants[id(value)] = self._body
        self._body.steps.append(step)
        self._add([value])

    def operation(
        self, step: EmittedOperation | FunctionCall, operands: Sequence[Value], results: Sequence[Value]
    ) -> None:
        """Record an operation, with the value numbers of its operands."""
        self._body.steps.append(step._replace(operands=self._numbers_of(operands)))
        self._add(results)

    def body(self, fill: Callable[[ir.Region], None], region: ir.Region) -> RecipeBlock:
        """Record the block that `fill(region)` emits."""
        outer, self._body = self._body, RecipeBlock([], [])
        numbers, constants = dict(self._numbers), dict(self._constants)
        fill(region)
        inner, self._body = self._body, outer
        # A constant that the region also requested has its outer number again.
        self._numbers.update(numbers)
        self._constants = constants
        return inner

    def block(self, types: Sequence[ir.Type], arguments: Sequence[Value]) -> None:
        """Record the arguments of the block that is filled next."""
        self._body.types.extend(types)
        self._add(arguments)

    def recipe(self, results: Sequence[Value]) -> Recipe | None:
        """The recorded recipe; None if it cannot be replayed with other operands."""
        numbers = self._numbers_of(results)
        return None if self._invalid or self.forbidden else Recipe(self._body.steps, numbers)

    def _add(self, values: Sequence[Value]) -> None:
        for value in values:
            self._invalid = self._invalid or id(value) in self._numbers
            self._numbers[id(value)] = len(self._values)
            self._values.append(value)

    def _numbers_of(self, values: Sequence[Value]) -> list[int]:
        found = [self._numbers.get(id(v), -1) for v in values]
        self._invalid = self._invalid or -1 in found
        return found
