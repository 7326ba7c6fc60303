"""Recipes: what the lowering rule of a primitive wrote for one equation, to be written again for the next one like it.

While a rule runs, a `Tape` takes down the operations that it creates. Values are known by numbers: first the operands,
then block arguments and results in the order in which they come. A rule that does something else besides, such as
adding a function to the module, spoils the tape.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from jaxlib.mlir import ir

from xlamini.core.avals import ShapedArray
from xlamini.core.jaxpr import Atom, Jaxpr

Value = Any


class Step(NamedTuple):
    """An operation; `operands` are numbers of values, `bodies` what stands in its regions."""

    name: str
    operands: Sequence[int]
    types: Sequence[ir.Type]
    attributes: dict[str, ir.Attribute] | None
    bodies: Sequence[Body]


class Constant(NamedTuple):
    """A constant: the one that the block has under this key, or a new one."""

    key: tuple
    array: Any
    aval: ShapedArray


class Part(NamedTuple):
    """A call of what is part of the equation, as a function of the module."""

    jaxpr: Jaxpr
    operands: Sequence[int]
    name: str


class Body(NamedTuple):
    """A block: the types of its arguments, and its operations."""

    types: list[ir.Type]
    steps: list[Step | Constant | Part]


class Recipe(NamedTuple):
    """What a rule writes, and the numbers of the values that it returns."""

    steps: Sequence[Step | Constant | Part]
    results: Sequence[int]


class Tape:
    """Takes down what is written between the operands and the results of a rule."""

    def __init__(self, atoms: Sequence[Atom], operands: Sequence[Value]):
        self.forbidden = False
        """Whether the rule did what cannot be repeated."""
        self._numbers: dict[int, int] = {}
        self._values = list(operands)  # kept, so that no other value gets the id of one of them
        self._constants: dict[int, Body] = {}
        self._body = Body([], [])
        for i, x in enumerate(operands):
            self._numbers[id(x)] = i
        # One value of two variables would be two different ones in the next equation.
        self._spoiled = len(self._numbers) < len(set(atoms))

    def constant(self, step: Constant, value: Value) -> None:
        """Note a constant that the rule asked for, which the block may have had before."""
        if self._constants.get(id(value)) is self._body:
            return
        if id(value) in self._constants:  # found from another block, which may not be so the next time
            del self._numbers[id(value)]
        self._constants[id(value)] = self._body
        self._body.steps.append(step)
        self._add([value])

    def operation(self, step: Step | Part, operands: Sequence[Value], results: Sequence[Value]) -> None:
        """Note an operation; the numbers of its operands are added."""
        self._body.steps.append(step._replace(operands=self._numbers_of(operands)))
        self._add(results)

    def body(self, fill: Callable[[ir.Region], None], region: ir.Region) -> Body:
        """What `fill(region)` writes into the region."""
        outer, self._body = self._body, Body([], [])
        numbers, constants = dict(self._numbers), dict(self._constants)
        fill(region)
        inner, self._body = self._body, outer
        # A constant that the region asked for too has its own number again outside.
        self._numbers.update(numbers)
        self._constants = constants
        return inner

    def block(self, types: Sequence[ir.Type], arguments: Sequence[Value]) -> None:
        """Note the arguments of the block that is written to next."""
        self._body.types.extend(types)
        self._add(arguments)

    def recipe(self, results: Sequence[Value]) -> Recipe | None:
        """What was taken down; None if it cannot be repeated with other operands."""
        numbers = self._numbers_of(results)
        return None if self._spoiled or self.forbidden else Recipe(self._body.steps, numbers)

    def _add(self, values: Sequence[Value]) -> None:
        for value in values:
            self._spoiled = self._spoiled or id(value) in self._numbers
            self._numbers[id(value)] = len(self._values)
            self._values.append(value)

    def _numbers_of(self, values: Sequence[Value]) -> list[int]:
        found = [self._numbers.get(id(v), -1) for v in values]
        self._spoiled = self._spoiled or -1 in found
        return found
