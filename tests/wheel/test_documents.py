"""Every documented command and program is run over the wheel, or it says why not."""
from __future__ import annotations

import re

from tests.wheel.documents import commands, programs
from tests.wheel.reasons import COMMANDS, PROGRAMS, reason
from tests.wheel.run import FAILS


def test_what_is_documented_is_found_and_most_ways_of_starting_are_run() -> None:
    run = {text for text in commands() if reason(text, COMMANDS) is None}
    ways = ["run script.py", "-p xlamini.as_jax", "jax-wheel DIR", "launch -n 4", "doctor", "inspect", "explain"]
    assert all(any(way in text for text in run) for way in ways)
    assert all("xlamini" in text or "train.py" in text or text.startswith(("pip ", "python -c ")) for text in run)
    assert set(FAILS) <= run
    assert any("import xlamini.as_jax" in text for name, text in programs().items() if not reason(name, PROGRAMS))


def test_every_reason_is_needed() -> None:
    for reasons, found in ((COMMANDS, commands()), (PROGRAMS, programs())):
        unused = [pattern for pattern in reasons if not any(re.fullmatch(pattern, text, re.DOTALL) for text in found)]
        assert not unused


def test_commands_are_found_in_all_their_forms() -> None:
    """On a line of its own, in a block of a console, and in backquotes that a line ends in."""
    found = commands()
    assert "python -m xlamini.launch -n 4 train.py --steps 100" in found
    assert "python -m xlamini doctor --platform tpu" in found
    assert found["python -m xlamini run script.py"] == "docs/coming-from-jax.md"
