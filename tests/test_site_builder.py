"""What the site makes of the library: programs of the reference."""

from __future__ import annotations

import pytest

from docs.builder.jaxprs import ROWS, session
from docs.builder.names import names_of, public_modules


@pytest.mark.parametrize("name", ROWS)
def test_a_program_of_the_reference(name: str) -> None:
    module, _, last = name.rpartition(".")
    assert last in names_of(public_modules()[module])
    lines = session(name, getattr(public_modules()[module], last))
    assert lines[0].startswith(">>> print(xlamini.make_jaxpr(") and lines[1].startswith("{ lambda ; ")
    assert 1 < len(lines) <= 25


def test_other_names_have_none() -> None:
    assert session("xlamini.debug.memos", None) == []
