"""The equations that each instruction of a module comes from, and the instructions that the compiler put in.

An instruction whose op name holds no label takes over the labels of another, by the first rule that finds some:

1. A fusion, a call: those of the instructions inside, the result's first.
2. What moves a value (a copy, a conversion, a broadcast): those of the value that it moves.
3. Those of the instructions that use it: a constant, an allocation and a copy of an argument are made for them.
4. In a computation that is called, such as the body of a loop: those of the instruction that calls it.
"""
from __future__ import annotations

from collections.abc import Iterable, Iterator

from xlamini.inspection.xla.facts import Coverage
from xlamini.inspection.xla.hlo import PLUMBING, HloComputation, Module, labels_of
from xlamini.runtime.hlo.instructions import Instruction

Labels = tuple[str, ...]

_MOVES = PLUMBING | frozenset(
    "copy copy-start copy-done convert transpose reshape broadcast bitcast-convert async-start async-update async-done "
    "slice-start slice-done optimization-barrier dynamic-slice slice pad".split()
)
_MOST_STEPS = 64


class Labelling:
    """The labels of a module's instructions; `own` are those in their op names and inside them."""

    def __init__(self, module: Module):
        self._module = module
        self._own: dict[tuple[str, str], Labels] = {}
        self._found: dict[tuple[str, str], Labels] = {}

    def own(self, around: HloComputation, each: Instruction) -> Labels:
        """The labels in an instruction's op name, then those inside of what it calls."""
        key = (around.name, each.name)
        if key not in self._own:
            self._own[key] = _once([*labels_of(each.op_name), *self._inside(each)])
        return self._own[key]

    def of(self, around: HloComputation, each: Instruction) -> Labels:
        """The labels of an instruction, its own or by a rule; () if the compiler put it in for no equation."""
        key = (around.name, each.name)
        if key not in self._found:
            self._found[key] = self.own(around, each) or self._inherited(around, each)
        return self._found[key]

    def _inside(self, each: Instruction) -> Iterator[str]:
        for name in each.called:
            inner = self._module.computations.get(name)
            if inner is None or each.opcode == "while":
                continue
            instructions = list(inner.instructions.values())
            for inside in sorted(instructions, key=lambda i: not i.is_root):
                if inside.opcode not in PLUMBING or inside.is_root:
                    yield from self.own(inner, inside)

    def _inherited(self, around: HloComputation, each: Instruction) -> Labels:
        moved = self._of_moved(around, each) if each.opcode in _MOVES else ()
        return moved or self._of_users(around, each, set()) or self._of_caller(around)

    def _of_moved(self, around: HloComputation, each: Instruction) -> Labels:
        """The own labels of the value that a chain of moves begins with."""
        for _ in range(_MOST_STEPS):
            source = around.instructions.get(each.operands[0]) if each.operands else None
            if source is None:
                return ()
            if own := self.own(around, source):
                return own
            if source.opcode not in _MOVES:
                return ()
            each = source
        return ()

    def _of_users(self, around: HloComputation, each: Instruction, seen: set[str]) -> Labels:
        """The own labels of the users, and of theirs where a user has none."""
        found: list[str] = []
        for user in self._module.users[around.name].get(each.name, ()):
            if user.name in seen:
                continue
            seen.add(user.name)
            found += self.own(around, user)[:1] or self._of_users(around, user, seen)
        return _once(found)

    def _of_caller(self, around: HloComputation) -> Labels:
        caller = self._module.callers.get(around.name)
        return self.of(self._module.computations[caller[0]], caller[1]) if caller else ()

    def coverage(self) -> Coverage:
        """How many of the instructions that are no plumbing have labels, in all computations that are reached."""
        found = [
            (each.name, bool(self.of(around, each)))
            for around in self._module.computations.values()
            for each in around.instructions.values()
            if each.opcode not in PLUMBING
        ]
        inserted = tuple(name for name, has_label in found if not has_label)
        return Coverage(len(found), len(found) - len(inserted), inserted)

    def of_lines(self, count: int) -> list[Labels]:
        """The labels of each of the first lines of the text; plumbing has only those in its own op name."""
        lines: list[Labels] = [()] * count
        for around in self._module.computations.values():
            for each in around.instructions.values():
                lines[each.line] = labels_of(each.op_name) if each.opcode in PLUMBING else self.of(around, each)
        return lines


def _once(labels: Iterable[str]) -> Labels:
    return tuple(dict.fromkeys(labels))
