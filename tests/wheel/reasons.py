"""What is documented, but not run over the wheel, with the reason; a pattern is for the whole text."""
from __future__ import annotations

import re

_CLONE = "needs a clone: another step of .ci/run"
_HAND = "needs a clone, and is run by hand"
_PLACE = "stands for several commands, which are run by their names"

COMMANDS = {
    r"python3 -m venv .*": "makes the environment, which .ci/wheel has made",
    r"pip install -e .*": _CLONE,
    r"(python -m )?pytest (-n auto|tests/|--).*": _CLONE,
    r"(ruff|lint-imports|pyright) .*": _CLONE,
    r"python -m docs.*": _CLONE,
    r".*python -m (benchmarks|tests)\b.*": _HAND,
    r"python (tests/golden|examples)/.*": _HAND,
    r"pip install wheels/jax-.*|python (-m xlamini run )?fit.py": "needs a library of others': tests/ecosystem",
    r"pip install (matplotlib|libtpu|\"?jax-.*)": "a package of others'",
    r"python -m xlamini(\.NAME|\.launch| run| COMMAND| …| inspect ….*| explain NAME| jax-wheel)": _PLACE,
    r"python -m xlamini profile\b.*": "a script or a trace of the reader's: tests/inspection/timing",
    r"python -m xlamini inspect .*--targets here,gpu:h200.*": "needs the compiler for GPUs: tests/aot",
}

PROGRAMS = {
    r"(CONTRIBUTING|docs/extending|docs/inside/adding)\.md \d+": "a part of the page's session: tests/test_doctests.py",
    r"docs/distributed.md 0": "functions of the reader's; the launcher runs a whole program",
    r"docs/coming-from-jax.md 1": "a function that is not called",
    r"docs/inspect-schema.md 0": "reads a report of the reader's: tests/inspection/test_schema.py",
}


def reason(text: str, reasons: dict[str, str]) -> str | None:
    """Why this is not run over the wheel; None if it is."""
    return next((why for pattern, why in reasons.items() if re.fullmatch(pattern, text, re.DOTALL)), None)
