"""Sharding rules of custom_partitioning: their texts, and their form in MLIR. JAX writes the same attributes."""
from __future__ import annotations

from typing import Any

import pytest

from xlamini.experimental.custom_partitioning import BATCHING, ArrayMapping, CompoundFactor, SdyShardingRule
from xlamini.transforms.partitioning.sharding_rule import parsed, written

MANY = "a b c d e f g h i j k l m n o p q r s t -> a"
LETTERS = "ijklmnopqrstuvwxyz"
SYMBOLS = [*LETTERS, "z_1", "z_2"]

WRITTEN: list[tuple[str, Any, Any, dict[str, Any], str]] = [
    (
        "i k, k j -> i j", [(8, 4), (4, 6)], [(8, 6)], {"reduction_factors": ("k",)},
        "([i, j], [j, k])->([i, k]) {i=8, j=4, k=6} reduction={j}, custom",
    ),
    ("... i -> ... i", [(2, 3, 8)], [(2, 3, 8)], {}, "([i, j, k])->([i, j, k]) {i=2, j=3, k=8}, custom"),
    ("... i -> ... i", [(8,)], [(8,)], {}, "([i])->([i]) {i=8}, custom"),
    (
        "...1 i, ...2 j -> ...1 i j", [(5, 2), (3,)], [(5, 2, 3)], {},
        "([i, j], [k])->([i, j, k]) {i=5, j=2, k=3}, custom",
    ),
    ("(h d) j -> h d j", [(8, 3)], [(2, 4, 3)], {}, "([ij, k])->([i, j, k]) {i=2, j=4, k=3}, custom"),
    ("(h d) -> (d h)", [(8,)], [(8,)], {"h": 2, "d": 4}, "([ij])->([ji]) {i=2, j=4}, custom"),
    ("i -> ", [(4,)], [()], {"reduction_factors": ("i",)}, "([i])->([]) {i=4} reduction={i}, custom"),
    ("i, i -> i", [(8,), (4,)], [(8,)], {}, "([i], [i])->([i]) {i=4}, custom"),
    (
        MANY, [(2,) * 20], [(2,)], {"need_replication_factors": ("t", "b"), "permutation_factors": ("a",)},
        f"([{', '.join(SYMBOLS)}])->([i]) {{{', '.join(f'{s}=2' for s in SYMBOLS)}}} "
        "need_replication={j, z_2} permutation={i}, custom",
    ),
]


@pytest.mark.parametrize(("text", "operands", "results", "options", "wanted"), WRITTEN)
def test_written(text: str, operands: Any, results: Any, options: dict[str, Any], wanted: str) -> None:
    assert written(parsed(text, **options), operands, results) == f"#sdy.op_sharding_rule<{wanted}>"


def test_text_and_objects_say_the_same() -> None:
    rule = SdyShardingRule(
        (ArrayMapping(BATCHING, CompoundFactor("h", "d")), ArrayMapping("d")), (ArrayMapping(BATCHING, "h"),),
        reduction_factors=("d",),
    )
    text = parsed("... (h d), d -> ... h", reduction_factors=("d",))
    assert str(text) == "SdyShardingRule((('…0', ('h', 'd')), ('d',)), (('…0', 'h'),), {} reduction_factors=('d',))"
    shapes = [(5, 8), (4,)], [(5, 2)]
    assert written(rule, *shapes) == written(text, *shapes)


REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("i j", {}, "There is no -> in rule"),
    ("i -> i -> j", {}, "There is no -> in rule"),
    ("i ... -> i", {}, "Ellipsis can only be used at the beginning"),
    ("i j -> i .. j", {}, "Character '.' must be used inside ellipsis"),
    ("2 i -> i", {}, "Factor names have to start with a letter, but got '2'"),
    ("_i -> i", {}, "Factor names have to start with a letter, but got '_i'"),
    ("i + j -> i", {}, "Unknown character '+'"),
    ("… -> i", {}, "Unknown character '…'"),
    ("(i) -> i", {}, "Brackets should contain at least two factors"),
    ("(i j -> i j", {}, "Brackets are not balanced"),
    ("i) -> i", {}, "Brackets are not balanced"),
    ("((i j) k) -> i j k", {}, "nested; compound factors have one level"),
    ("(h d) -> (d h)", {"h": 2}, "Factor d is only used in compound factors; must specify its size, as d=2"),
    ("i j -> i j", {"i": 2}, "Factor i represents a whole dimension; do not specify its size"),
    ("i j -> i j", {"k": 2}, "Factor k is not used in the rule, but size is provided"),
    ("i j -> i", {"reduction_factors": ("z",)}, "Factor z in reduction_factors is not used in the rule"),
    ("i j -> i", {"reduction_factors": ["j"]}, "reduction_factors must be a tuple of factors"),
    ("i -> i", {"reduction_factors": ("i",), "permutation_factors": ("i",)}, "Factor i can only be in one of"),
]


@pytest.mark.parametrize(("text", "options", "message"), REFUSED)
def test_refused(text: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as found:
        parsed(text, **options)
    assert message in str(found.value)


MISFITS: list[tuple[str, Any, Any, dict[str, Any], str]] = [
    ("i -> i", [(8, 8)], [(8, 8)], {}, "0th operand has rank 1, but the operation 0th operand has rank 2"),
    ("i j -> i", [(8, 8)], [(8, 8)], {}, "0th result has rank 1, but the operation 0th result has rank 2"),
    ("i, j -> i", [(8,)], [(8,)], {}, "Sharding rule has 2 operands, but the operation has 1 operands"),
    ("i -> i, i", [(8,)], [(8,)], {}, "Sharding rule has 2 results, but the operation has 1 results"),
    ("... i, ... j -> ... i j", [(2, 3), (4,)], [(2, 3, 4)], {}, "different number of leading dimensions 1 and 0"),
    ("... i, ... j -> ... i j", [(2, 3), (5, 4)], [(2, 3, 4)], {}, "Batching dimension 0_0 corresponds to two sizes"),
    ("(h d) -> (h d)", [(9,)], [(9,)], {"h": 2, "d": 4}, "0th operand actual size 9 doesn't match the size 8"),
]


@pytest.mark.parametrize(("text", "operands", "results", "options", "message"), MISFITS)
def test_shapes_that_do_not_fit(text: str, operands: Any, results: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as found:
        written(parsed(text, **options), operands, results)
    assert message in str(found.value)


def test_mappings_are_checked() -> None:
    for make, message in (
        (lambda: CompoundFactor("a"), "at least two factors"),
        (lambda: CompoundFactor("a", 1), "factors are names, got 1"),  # type: ignore[arg-type]
        (lambda: CompoundFactor("a", BATCHING), "Ellipsis can't be used in a compound factor"),
        (lambda: ArrayMapping("a", BATCHING), "Ellipsis can only be used at the beginning"),
        (lambda: ArrayMapping(1), "dimensions are names or CompoundFactors, got 1"),  # type: ignore[arg-type]
        (lambda: ArrayMapping("a-b"), "Unknown character '-'"),
    ):
        with pytest.raises(ValueError) as found:
            make()
        assert message in str(found.value)
