"""Which equation of one report is which of another, and which kernel: rules so simple that the page has the same.

The page's are in frontend/src/match.js; tests/golden/report_matching.json has cases that both must get right.

Equations of both final programs are paired by these steps, and an equation has at most one partner:

1. A key is an equation's scope, its primitive, its direction and the types of its results. Where both programs have a
   key equally often, its equations are paired in program order.
2. From each pair, in the order in which pairs were made (at first: of the rows after), the neighbours are paired: of
   the operands, then of the users, each that has no partner yet gets the first one on the other side that has none and
   has the same key, or else the same primitive. Such pairs join the end of the queue.
3. Where both sides have equations of one key left, they are paired in program order as far as they go; then step 2
   again, from these pairs.

What has no partner then is new, or lost. Kernels of a target are paired by what is inside: the two that share most
pairs of equations first, ties by the place of the one after, then of the one before. Kernels without equations are
paired by opcode and type, in order.
"""
from __future__ import annotations

from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from xlamini.inspection.equations import Report, final_rows, type_of, users

Key = tuple[str, str, str, str]
Groups = Mapping[Key, list[int]]


def key_of(report: Report, row: int) -> Key:
    """The scope, the primitive, the direction and the result types of an equation."""
    columns = report["equations"]
    where = columns["scope"][row], columns["primitive"][row], columns["direction"][row]
    return *where, type_of(columns["text"][row])


class _Program:
    """The final program of a report, and which of its rows have a partner."""

    def __init__(self, report: Report):
        self.rows = final_rows(report)
        self.keys = {row: key_of(report, row) for row in self.rows}
        self.partners: dict[int, int] = {}
        self._operands, self._users = report["equations"]["operands"], users(report, self.rows)

    def free(self, rows: Iterable[int]) -> list[int]:
        """Those of the rows that belong to the program and have no partner, each once."""
        return [row for row in dict.fromkeys(rows) if row in self.keys and row not in self.partners]

    def neighbours(self, row: int) -> tuple[Iterable[int], Iterable[int]]:
        return self._operands[row], self._users.get(row, ())

    def groups(self) -> Groups:
        """The rows without partner, by key."""
        found = defaultdict[Key, list[int]](list)
        for row in self.free(self.rows):
            found[self.keys[row]].append(row)
        return found


def match_equations(before: Report, after: Report) -> dict[int, int]:
    """For each row of the final program after that has a partner: the row before."""
    old, new = _Program(before), _Program(after)
    _pair_neighbours(old, new, _pair_groups(old, new, equal=True))
    _pair_neighbours(old, new, _pair_groups(old, new, equal=False))
    return new.partners


def _pair(old: _Program, new: _Program, b: int, a: int) -> tuple[int, int]:
    old.partners[b], new.partners[a] = a, b
    return b, a


def _pair_groups(old: _Program, new: _Program, equal: bool) -> list[tuple[int, int]]:
    """Pair what is left of each key in order; with `equal`, only where both sides have equally many."""
    olds, found = old.groups(), []
    for key, rows in new.groups().items():
        partners = olds.get(key, [])
        if not equal or len(partners) == len(rows):
            found += zip(partners, rows, strict=False)
    return [_pair(old, new, b, a) for b, a in sorted(found, key=lambda pair: pair[1])]


def _pair_neighbours(old: _Program, new: _Program, pairs: Sequence[tuple[int, int]]) -> None:
    """Pair the neighbours of pairs, and theirs."""
    queue = deque(pairs)
    while queue:
        b, a = queue.popleft()
        for olds, news in zip(old.neighbours(b), new.neighbours(a), strict=True):
            for row in new.free(news):
                partner = _nearest(old, old.free(olds), new.keys[row])
                if partner is not None:
                    queue.append(_pair(old, new, partner, row))


def _nearest(old: _Program, rows: Sequence[int], key: Key) -> int | None:
    """The first row with this key, or else with its primitive."""
    same = next((row for row in rows if old.keys[row] == key), None)
    return same if same is not None else next((row for row in rows if old.keys[row][1] == key[1]), None)


Kernels = Sequence[Mapping[str, Any]]


def match_kernels(before: Kernels, after: Kernels, partners: Mapping[int, int]) -> dict[int, int]:
    """For each kernel after that has a partner: the kernel before, given the partners of equations."""
    found, taken = dict[int, int](), set[int]()
    for b, a in [*_by_contents(before, after, partners), *_by_type(before, after)]:
        if a not in found and b not in taken:
            found[a] = b
            taken.add(b)
    return found


def _by_contents(before: Kernels, after: Kernels, partners: Mapping[int, int]) -> list[tuple[int, int]]:
    """Pairs of kernels that share equations, those that share most first."""
    holders = defaultdict[int, list[int]](list)
    for b, kernel in enumerate(before):
        for row in kernel["rows"]:
            holders[row].append(b)
    shared = Counter(
        (b, a) for a, k in enumerate(after) for row in k["rows"] if row in partners for b in holders[partners[row]]
    )
    return sorted(shared, key=lambda pair: (-shared[pair], pair[1], pair[0]))


def _by_type(before: Kernels, after: Kernels) -> Iterator[tuple[int, int]]:
    """Pairs of kernels without equations, of one opcode and type, in order."""
    left = defaultdict[tuple[str, str], list[int]](list)
    for b, kernel in enumerate(before):
        if not kernel["rows"]:
            left[kernel["opcode"], kernel["type"]].append(b)
    for a, kernel in enumerate(after):
        same = left.get((kernel["opcode"], kernel["type"]))
        if same and not kernel["rows"]:
            yield same.pop(0), a
