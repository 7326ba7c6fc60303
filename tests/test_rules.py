"""The table of rules is complete: what is missing is missing for a reason, said on the class."""
from __future__ import annotations

from dataclasses import FrozenInstanceError

import pytest

from xlamini.commands import rules
from xlamini.core import Primitive
from xlamini.core.program import primitive
from xlamini.core.program.bindable import FURTHER, Bindable, primitives
from xlamini.primitives.base.linear_map import JointlyLinear
from xlamini.primitives.shape.shape import LinearUnary

TABLE = rules.rows()
WITHOUT_MODULE = """
from xlamini.core import Primitive

class Odd(Primitive):
    name = "odd"
    __module__ = None

Odd()
"""
BY_NAME = {row.primitive.name: dict(zip(rules.RULES, row.cells, strict=True)) for row in TABLE}


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.primitive.name)
def test_every_primitive_has_its_rules(row: rules.Row) -> None:
    missing = {rule for rule, cell in zip(rules.RULES, row.cells, strict=True) if cell == "-"}
    assert missing <= {"transpose", *row.primitive.lacks}


@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.primitive.name)
def test_no_reason_is_given_for_a_rule_that_is_there(row: rules.Row) -> None:
    missing = {rule for rule, cell in zip(rules.RULES, row.cells, strict=True) if cell == "-"}
    assert set(row.primitive.lacks) <= missing


def test_what_is_linear_has_a_transpose() -> None:
    linear = [row for row in TABLE if isinstance(row.primitive, JointlyLinear | LinearUnary)]
    assert len(linear) > 10
    assert all(BY_NAME[row.primitive.name]["transpose"] != "-" for row in linear)


def test_the_contract_is_short() -> None:
    """The members that an operation may state, facets apart, and its traits; each number may only fall."""
    members = {n for n in (*vars(Primitive), *Primitive.__annotations__) if not n.startswith("_")}
    assert set(rules.FACETS) < members and len(rules.FACETS) == 3
    assert len(members - set(rules.FACETS)) <= 15
    assert len([n for n in (*vars(Bindable), *Bindable.__annotations__) if not n.startswith("_")]) <= 12
    assert len(FURTHER) <= 16
    replaced = {"HAS_SINGLE_CPU_LOWERING", "HAS_DOUBLE_CPU_LOWERING"}
    traits = {name for name, value in vars(primitive).items() if name.isupper() and type(value) is int}
    assert traits - replaced == {"PURE", "ELEMENTWISE", "REMATERIALIZABLE"}


@pytest.mark.parametrize("name", FURTHER)
def test_few_primitives_have_a_further_rule(name: str) -> None:
    assert not hasattr(Primitive, name)
    assert any(hasattr(row.primitive, name) for row in TABLE)


def test_facets_are_shown_where_they_say_something() -> None:
    found = {row.primitive.name: rules.stated(row) for row in TABLE}
    assert found["dot_general"] == "sharding(factors, sums, mixes_reduced) memory(product) checks(keeps_nan)"
    assert found["neg"] == "sharding(factors, linear) checks(makes_nan, keeps_nan)"
    assert found["scatter"] == "sharding(factors, chooses_memory) memory(updates) checks(makes_nan, failures)"


def test_a_facet_is_fixed() -> None:
    with pytest.raises(FrozenInstanceError):
        setattr(Primitive.memory, "moves", True)  # noqa: B010 - what a type checker would refuse


def test_names_are_unique() -> None:
    assert len(BY_NAME) == len(TABLE)


def test_cells_tell_own_rules_from_derived_ones() -> None:
    sine = BY_NAME["sin"]
    assert sine["jvp"].file == "primitives/elementwise/trigonometric.py"
    assert (sine["shape_rule"], sine["batch"], sine["transpose"]) == ("Elementwise", "Elementwise", "-")
    assert BY_NAME["and"]["jvp"] == "-"
    assert BY_NAME["reduce_xor"]["transpose"] == "-"


@pytest.mark.full
def test_a_primitive_of_code_without_a_module_is_no_row() -> None:
    """Such code is what `exec` runs in an empty namespace."""
    before, expected = len(primitives), len(rules.rows())  # with those of other tests in this process
    try:
        exec(WITHOUT_MODULE, {})
        assert len(rules.rows()) == expected
    finally:
        del primitives[before:]


@pytest.mark.full
def test_command_prints_the_table(capsys: pytest.CaptureFixture[str]) -> None:
    rules.main([])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["primitive", "declared", "at", *rules.RULES, "facets"]
    assert any(line.startswith("dot_general ") for line in lines)
    assert "no transpose (not linear): all that have a `-` there" in lines


@pytest.mark.full
def test_markdown_has_links(capsys: pytest.CaptureFixture[str]) -> None:
    rules.main(["--markdown"])
    text = capsys.readouterr().out
    assert "| [sin](xlamini/primitives/elementwise/trigonometric.py#L" in text
