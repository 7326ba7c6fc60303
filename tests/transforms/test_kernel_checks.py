"""Planted mistakes in kernels: each is found under checks, with its program, ref and line."""
from __future__ import annotations

import pytest

from tests.support.kernel_mistakes import MISTAKES
from xlamini.errors import KernelCheckError

WITHOUT_LINE = {
    *("grid_too_short", "half_of_a_block", "second_result_forgotten", "every_other_element"),
    *("alternate_blocks", "sum_over_the_first_axis"),
}  # fmt: skip
"""Mistakes of no line: of the grid, or of a line that is missing."""


@pytest.mark.parametrize("name", MISTAKES)
def test_mistake_is_found(name: str) -> None:
    planted = MISTAKES[name]
    with pytest.raises(KernelCheckError) as found:
        planted.call()
    message = str(found.value)
    assert planted.text in message
    assert (found.value.ref, found.value.program) == (planted.ref, planted.program)
    has_line = planted.program is not None and name not in WITHOUT_LINE and "is not in its array" not in message
    assert not has_line or "/tests/support/" in str(found.value.place)
    assert planted.program is None or f"program {planted.program}" in message


def test_enough_mistakes() -> None:
    assert len(MISTAKES) >= 40
