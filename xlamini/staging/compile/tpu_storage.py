"""What XLA stores on a TPU, where that differs from other platforms.

A matrix unit's loop computes elementwise operands of a product and what is made of its result, so neither is stored;
other elementwise values are computed wherever they are read. A float32 value that only products read is stored as
bfloat16, to which they round it. Transposes, gathers and concatenations are copies. An array consists of tiles, and the
compiler chooses the layout that pads it least.
"""
from __future__ import annotations

import itertools
from typing import NamedTuple

import numpy as np

from xlamini.core import ELEMENTWISE, REMATERIALIZABLE, Equation, Jaxpr, ShapedArray, Var, as_dtype
from xlamini.core.memory import STORED, Memory
from xlamini.primitives.precision import rounds_to_bfloat16
from xlamini.staging.call.higher_order import HigherOrder
from xlamini.staging.compile.storage import LOOPS, Storage

COLUMNS, ROWS, WORD = 128, 8, 4
"""The shape of a tile, and the bytes of an element that has a row to itself."""
LEAST, LONGEST = 512, 1024
"""The bytes of the smallest array, and the elements of the largest tile of a vector."""


class TpuStorage(Storage):
    """Where the values of a jaxpr are on a TPU."""

    def __init__(self, jaxpr: Jaxpr):
        self.loops: dict[Var, int] = {}  # what is computed in the loop of a product, with the product's position
        self.positions = {v: i for i, eqn in enumerate(jaxpr.eqns) for v in eqn.outvars}
        self.rounded: dict[Var, bool] = {}
        self.bodies: dict[Jaxpr, TpuStorage] = {}
        self.results = {a for a in jaxpr.outvars if type(a) is Var}
        super().__init__(jaxpr)

    def stored_as(self, var: Var) -> ShapedArray:
        return var.aval.update(dtype=as_dtype("bfloat16")) if self._is_narrow(var) else var.aval

    @staticmethod
    def size(aval: ShapedArray) -> int:
        return padded(aval)

    def _needed_whole(self) -> set[Var]:
        whole = set(self.results)
        for eqn in reversed(self.jaxpr.eqns):
            loops, memory = _use(eqn)
            fused = loops or memory.reads or memory.contracts or memory.moves
            if not fused or memory.indexes or memory.joins or (memory.view and eqn.outvars[0] in whole):
                whole.update(a for a in eqn.invars if type(a) is Var)
        return whole

    def _is_stored(self, eqn: Equation, var: Var) -> bool:
        (loops, memory), readers = _use(eqn), [_use(reader) for reader in self.readers[var]]
        self._enter_loop(eqn, var)
        if memory.view:
            return False
        if var in self.whole or not (loops or memory.contracts or memory.permutes or memory.joins):
            return True
        if var in self.loops:
            return not _ends_in(readers)
        return memory.permutes and not all(reader.memory.contracts for reader in readers)

    def aligned(self, var: Var) -> set[Var]:
        """Loops write into new memory here, but for updates."""
        eqn = self.makers[var]
        return set(self.roots_of(eqn.invars[:1])) if _use(eqn).memory.updates else set()

    def _enter_loop(self, eqn: Equation, var: Var) -> None:
        """Note the product in whose loop a result is computed: one that reads nothing made later; others are stored."""
        operands = [v for v in dict.fromkeys(eqn.invars) if type(v) is Var]
        products = [v for v in operands if v in self.loops and not self.is_stored(v)]
        for v in products:
            others = (self.positions.get(root, -1) for root in self.roots_of(a for a in eqn.invars if a is not v))
            if v is not products[-1] or max(others, default=-1) > self.loops[v]:
                self.roots[v] = (v,)
            else:
                self.loops[var] = self.loops[v]
        if eqn.primitive.memory.contracts:
            self.loops[var] = self.positions[var]

    def _is_narrow(self, var: Var) -> bool:
        """Whether nothing but products reads it, which round it to bfloat16, and sums made in the same loop."""
        return var.aval.dtype == np.float32 and var in self.makers and self._is_rounded(var)

    def _is_rounded(self, var: Var) -> bool:
        if var not in self.rounded:
            found = {self._rounds(reader, var) for reader in self.readers[var]}
            self.rounded[var] = var not in self.results and True in found and False not in found
        return self.rounded[var]

    def _rounds(self, reader: Equation, var: Var) -> bool | None:
        """Whether an equation reads it as bfloat16; None if it does not matter."""
        primitive, traits, memory = reader.primitive, reader.primitive.traits, reader.primitive.memory
        if memory.contracts:
            return rounds_to_bfloat16(reader.params["precision"])
        if memory.moves or (traits & REMATERIALIZABLE and not traits & ELEMENTWISE):
            return self._is_rounded(reader.outvars[0])
        if isinstance(primitive, HigherOrder):
            return all(self._body(jaxpr).rounds_input(reader, var) for jaxpr, _ in primitive.runs(reader.params))
        return None if memory.reads and not memory.updates else False

    def rounds_input(self, caller: Equation, var: Var) -> bool:
        """Whether a body reads the operand `var` of its caller as bfloat16."""
        if len(caller.invars) != len(self.jaxpr.invars):
            return False
        mine = [v for v, a in zip(self.jaxpr.invars, caller.invars, strict=True) if a is var and self.readers[v]]
        return bool(mine) and all(map(self._is_rounded, mine))

    def _body(self, jaxpr: Jaxpr) -> TpuStorage:
        if jaxpr not in self.bodies:
            self.bodies[jaxpr] = TpuStorage(jaxpr)
        return self.bodies[jaxpr]


class _Use(NamedTuple):
    """Whether a TPU computes an operation inside of the loop that reads it, and what its own loops do."""

    loops: bool
    memory: Memory


def _use(eqn: Equation) -> _Use:
    """A scatter of one element to each row is a comparison of positions, computed in a loop."""
    primitive, numbers = eqn.primitive, eqn.params.get("dimension_numbers")
    rows = len(getattr(numbers, "operand_batching_dims", ()))
    if primitive.memory.updates and rows == eqn.outvars[0].aval.ndim - 1:
        return _Use(True, STORED)
    return _Use(bool(primitive.traits & LOOPS), primitive.memory)


def _ends_in(readers: list[_Use]) -> bool:
    """Whether a product's result is read by the one operation, or the sums, that are computed in its loop."""
    if all(reader.memory.reads for reader in readers):
        return True
    return len(readers) == 1 and (readers[0].loops or readers[0].memory.permutes)


def padded(aval: ShapedArray) -> int:
    """The bytes of an array in the layout that pads it least: tiles of rows and columns, or of a vector's elements."""
    item, shape = aval.dtype.itemsize, aval.shape
    if aval.size == 0:
        return 0
    if aval.ndim < 2:
        return item * _up(aval.size, min(max(LEAST // item, _power(aval.size)), LONGEST))
    return item * min(
        aval.size // (shape[i] * shape[j]) * _rows(shape[i], item) * _up(shape[j], COLUMNS)
        for i, j in itertools.permutations(range(aval.ndim), 2)
    )


def _rows(count: int, item: int) -> int:
    """Rows are padded to a tile, or to a lower one if they are few; narrow dtypes share the words of a row."""
    return _up(count, min(ROWS, max(_power(count), WORD // item)))


def _power(n: int) -> int:
    """The next power of two."""
    return 1 << (n - 1).bit_length()


def _up(n: int, multiple: int) -> int:
    return -(-n // multiple) * multiple
