"""The cheapest values to compute others from, beside all sets of vertices of small random graphs."""
from __future__ import annotations

import itertools
import random

import pytest

from xlamini.interpreters.outline.cut import cheapest_cut

Graph = dict[int, list[int]]


def suffices(given: set[int], operands: Graph, targets: list[int]) -> bool:
    """Whether the targets can be computed from these."""
    known = set(given)
    for vertex in sorted(operands):  # operands have lower numbers
        if all(x in known for x in operands[vertex]):
            known.add(vertex)
    return known.issuperset(targets)


def test_a_diamond_is_cut_where_it_is_narrow() -> None:
    operands = {1: [0], 2: [0], 3: [1, 2]}
    assert cheapest_cut(operands, [1, 2, 3], lambda _: 5) == [0]
    assert cheapest_cut(operands, [3], lambda _: 5) == [3]  # the last of several
    assert cheapest_cut({**operands, 0: []}, [1, 2, 3], lambda _: 5) == []  # computed from nothing


@pytest.mark.parametrize("seed", range(20))
def test_no_other_set_is_cheaper(seed: int) -> None:
    rng = random.Random(seed)
    size = 9
    operands = {v: rng.sample(range(v), rng.randint(1, min(v, 3))) for v in range(2, size) if rng.random() < 0.8}
    weights = [rng.choice([0, 1, 2, 5]) for _ in range(size)]
    targets = rng.sample(range(size), 3)
    cut = cheapest_cut(operands, targets, weights.__getitem__)
    sets = itertools.chain.from_iterable(itertools.combinations(range(size), n) for n in range(size))
    least = min(sum(weights[v] for v in given) for given in sets if suffices(set(given), operands, targets))
    assert suffices(set(cut), operands, targets) and sum(weights[v] for v in cut) == least
    assert cut == cheapest_cut(operands, targets, weights.__getitem__)
