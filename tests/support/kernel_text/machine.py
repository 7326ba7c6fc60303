"""A module as Python objects, and the machine that runs its functions, one operation after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxlib.mlir import ir

from tests.support.kernel_text.kinds import Kind, kind_of, python_of

Rule = Callable[..., Any]
"""`rule(machine, op, *operands)`: the result, a list of results, or None."""

_ENDS = {
    "scf.yield", "scf.condition", "func.return", "tt.return", "tt.reduce.return", "tt.scan.return", "tpu.yield",
    "return",
}  # fmt: skip


class KernelTextError(Exception):
    """The module does what no device would let it do, or has an operation that is not known here."""


@dataclass
class Op:
    """One operation."""

    name: str
    inputs: list[int]
    outputs: list[int]
    in_kinds: list[Kind]
    kinds: list[Kind]
    attributes: dict[str, Any]
    regions: list[Region]
    rule: Rule | None = None

    def segments(self, operands: Sequence[Any]) -> list[list[Any]]:
        """The operands in groups, where some are optional."""
        rest = iter(operands)
        return [[next(rest) for _ in range(size)] for size in self.attributes["operandSegmentSizes"]]


@dataclass
class Region:
    """The arguments and the operations of a region of one block."""

    args: list[int]
    kinds: list[Kind]
    ops: list[Op]


@dataclass
class Function:
    """A function of the module."""

    name: str
    body: Region
    attributes: dict[str, Any]


class Reader:
    """Makes Python objects of a module; each value gets a number."""

    def __init__(self, rules: Mapping[str, Rule]):
        self.rules, self.numbers = rules, {}

    def functions(self, module: Any) -> dict[str, Function]:
        """The functions by name."""
        found = [self._function(op.operation) for op in module.body.operations]
        return {f.name: f for f in found}

    def _function(self, operation: Any) -> Function:
        attributes = self._attributes(operation)
        return Function(attributes["sym_name"], self._region(operation.regions[0]), attributes)

    def _region(self, region: Any) -> Region:
        blocks = list(region.blocks)
        if not blocks:
            return Region([], [], [])
        if len(blocks) > 1:
            raise KernelTextError("a region of more than one block; branches are scf.if here")
        arguments = list(blocks[0].arguments)
        kinds = [kind_of(str(a.type)) for a in arguments]
        return Region(list(map(self._number, arguments)), kinds, [self._op(o.operation) for o in blocks[0].operations])

    def _number(self, value: Any) -> int:
        return self.numbers.setdefault(value, len(self.numbers))

    def _op(self, operation: Any) -> Op:
        ins, outs = list(operation.operands), list(operation.results)
        return Op(
            operation.name, list(map(self._number, ins)), list(map(self._number, outs)),
            [kind_of(str(x.type)) for x in ins], [kind_of(str(x.type)) for x in outs],
            self._attributes(operation), [self._region(r) for r in operation.regions],
            self.rules.get(operation.name),
        )  # fmt: skip

    def _attributes(self, operation: Any) -> dict[str, Any]:
        names = [a if isinstance(a, str) else a.name for a in operation.attributes]
        return {name: python_of(operation.attributes[name]) for name in names}


@dataclass
class Machine:
    """Runs functions. `ids` is the place of the program in the grid, `memory` is the dialect's own."""

    functions: dict[str, Function]
    memory: Any = None
    ids: tuple[int, ...] = ()
    grid: tuple[int, ...] = ()
    single_pass: bool = True
    """Whether products of float32 round their operands first, as the units of matrix products do by default."""
    values: dict[int, Any] = field(default_factory=dict)

    def call(self, name: str, args: Sequence[Any]) -> list[Any]:
        """The results of a function."""
        return self.run(self.functions[name].body, args)

    def run(self, region: Region, args: Sequence[Any]) -> list[Any]:
        """What the operation at the end of a region takes."""
        values = self.values
        values.update(zip(region.args, args, strict=True))
        for op in region.ops:
            operands = [values[i] for i in op.inputs]
            if op.name in _ENDS:
                return operands
            values.update(zip(op.outputs, self._step(op, operands), strict=True))
        return []

    def _step(self, op: Op, operands: Sequence[Any]) -> Sequence[Any]:
        if op.rule is None:
            raise KernelTextError(f"no rule for {op.name}")
        try:
            outs = op.rule(self, op, *operands)
            outs = outs if isinstance(outs, list | tuple) else [] if outs is None else [outs]
            return [_checked(x, kind) for x, kind in zip(outs, op.kinds, strict=True)]
        except Exception as error:
            if not getattr(error, "__notes__", None):
                error.add_note(f"in {op.name}, program {self.ids}")
            raise


def _checked(x: Any, kind: Kind) -> Any:
    """A result, which must be of its type; inside a reduction scalars stand for arrays of them."""
    if kind.is_memory or kind.dtype == object:
        return x
    x = np.asarray(x)
    if x.dtype != kind.dtype or (kind.shape and x.shape != kind.shape):
        raise KernelTextError(f"the result is {x.dtype}{list(x.shape)}, and its type {kind.dtype}{list(kind.shape)}")
    return x


def parsed(module: Any, context: Any = None) -> Any:
    """A module, of itself, its text or its bytecode."""
    if not isinstance(module, str | bytes):
        return module
    with context or kernel_dialects():
        return ir.Module.parse(module)


def kernel_dialects() -> Any:
    """An MLIR context that knows both dialects of kernels."""
    from jaxlib.mosaic.python import tpu
    from jaxlib.triton import dialect as triton

    from xlamini.runtime.files.module_reader import new_context

    context = new_context()
    triton.register_dialect(context)
    tpu.register_dialect(context)
    context.allow_unregistered_dialects = True
    return context
