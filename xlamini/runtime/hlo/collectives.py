"""The collectives of a program, read from its optimized HLO: the data that devices exchange."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from xlamini.runtime.hlo.computations import Computations, computations_of
from xlamini.runtime.hlo.instructions import op_name_in
from xlamini.runtime.hlo.shapes import sizes_of

KINDS = "all-gather|all-reduce|reduce-scatter|all-to-all|ragged-all-to-all|collective-permute|collective-broadcast"
COLLECTIVES: tuple[str, ...] = tuple(KINDS.split("|"))
"""The opcodes of collectives, which in asynchronous ones `-start` and `-done` follow."""
_COLLECTIVE = re.compile(rf"%?([\w.\-]+) = (\(?[a-z].*?\)?) ({KINDS})(-start)?\(")
_CHANNEL = re.compile(r"channel_id=(\d+)")
_ARGUMENT = re.compile(r"Arg_(\d+)")
_FRAME = re.compile(r"stack_frame_id=(\d+)")
_PLACE = re.compile(r'source_file="([^"]*)".*?source_line=(\d+)')
_GROUPS = re.compile(r"replica_groups=(?:\{\{([\d,]*)\}|\[\d+,(\d+)\]<=|mesh\[([^\]]*)\] \{([^}]*)\})")
_PAIRS = re.compile(r"source_target_pairs=\{(.*?)\}\}")


class HloCollective(NamedTuple):
    """One collective of a program."""

    kind: str
    """`all-gather`, `all-reduce`, `reduce-scatter`, `all-to-all`, `collective-permute`, …"""
    bytes: int
    """Bytes of the array on each device: of the operand for a reduce-scatter, of the result for the others."""
    times: int
    """The number of executions in a call of the program: the product of the trip counts around it."""
    group: int
    """The number of devices in a replica group."""
    op: str
    """The op name: the path and number of the equation it comes from."""
    line: str
    """The user's file and line, if the compiler preserved them."""
    name: str = ""
    """The name of the instruction."""

    def named(self, arguments: Sequence[str]) -> HloCollective:
        """A copy that names the argument it gathers, which the compiler knows by its index only."""
        number = _ARGUMENT.match(self.op)
        return self if number is None else self._replace(op=f"the argument {arguments[int(number[1])]!r}")


class Collectives(list[HloCollective]):
    """The collectives of a program; its text is a table, the largest first."""

    @property
    def bytes(self) -> int:
        """The total bytes on each device in one call of the program."""
        return sum(c.bytes * c.times for c in self)

    def __str__(self) -> str:
        if not self:
            return "no collectives"
        lines = [f"{len(self)} collectives, {_shown(self.bytes)} on each device in a call"]
        rows = Counter((c.kind, c.bytes, c.times, c.group, c.line or c.op) for c in self)
        for (kind, size, times, group, where), count in sorted(rows.items(), key=_total):
            runs = f"{_shown(size)} x {count * times}" if count * times > 1 else _shown(size)
            lines.append(f"  {kind:18} {runs:>16}  among {group:<4} {where}")
        return "\n".join(lines)


def _total(row: tuple[tuple[str, int, int, int, str], int]) -> int:
    (_, size, times, _, _), count = row
    return -size * times * count


def collectives_of(text: str) -> Collectives:
    """The collectives in the optimized HLO of a program; one split into several instructions is listed once."""
    if not _may_exchange(text):
        return Collectives()
    program = computations_of(text)
    found: dict[str, HloCollective] = {}
    for name, times in program.times().items():
        for line in filter(_may_exchange, program.lines[name]):
            match = _COLLECTIVE.search(line)
            if match is not None:
                channel = _CHANNEL.search(line)
                key = channel[1] if channel else line
                found.setdefault(key, _collective(program, name, line, match, times))
    return Collectives(found.values())


def _may_exchange(text: str) -> bool:
    # A search for words is ten times as fast as one for the pattern.
    return any(kind in text for kind in COLLECTIVES)


def _collective(program: Computations, name: str, line: str, match: re.Match[str], times: int) -> HloCollective:
    """One collective; if the compiler outlined it, its metadata is on the instruction that calls the computation."""
    scatters = name.startswith("all-reduce-scatter")
    described = line if op_name_in(line) else program.callers.get(name, line)
    instruction, shape, written, is_start = match.groups()
    sizes = list(sizes_of(shape))
    # The result tuple of an asynchronous start contains the operand too.
    size = max(sizes, default=0) if is_start else sum(sizes)
    group = _group_size(line)
    kind = "reduce-scatter" if scatters else written
    if written == "reduce-scatter":
        size *= group
    return HloCollective(kind, size, times, group, op_name_in(described), _line_of(program, described), instruction)


def _group_size(line: str) -> int:
    match = _GROUPS.search(line)
    if match is None:
        pairs = _PAIRS.search(line)
        return len(pairs[1].split("},")) if pairs else 1
    members, size, mesh, axes = match.groups()
    if mesh is None:
        return int(size) if size else len(members.split(","))
    sizes = dict(re.findall(r"'([^']*)'=(\d+)", mesh))
    return math.prod(int(sizes[axis]) for axis in re.findall(r"'([^']*)'", axes))


def _line_of(program: Computations, line: str) -> str:
    place = _PLACE.search(line)
    if place is not None:
        return f"{place[1]}:{place[2]}"
    frame = _FRAME.search(line)
    return program.places.get(int(frame[1]), "") if frame else ""


def _shown(size: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} TB"
