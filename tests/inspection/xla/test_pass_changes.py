"""What a pass made, and what the next one takes away: the lines kept between two passes belong to neither."""
from __future__ import annotations

from xlamini.inspection.xla.passes import PassFile, passes_of


def program(*names: str) -> bytes:
    lines = [f"  %{name} = f32[4]{{0}} negate(%a)" for name in names]
    return "\n".join(["HloModule f", "", "ENTRY %main (a: f32[4]) -> f32[4] {", *lines, "}", ""]).encode()


def test_a_line_that_stays_is_neither_made_nor_gone() -> None:
    contents = [program("x", "y"), program("x", "y", "z"), program("x", "z")]
    files = [(PassFile(i, "p", f"pass-{i}", ""), raw) for i, raw in enumerate(contents)]
    first, second, third = passes_of(files)
    made = [[each.text.lines[i].split()[0] for i in each.made] for each in (first, second, third)]
    gone = [[each.text.lines[i].split()[0] for i in each.gone] for each in (first, second, third)]
    assert made == [[], ["z"], []]
    assert gone == [[], ["y"], []]
