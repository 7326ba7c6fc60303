"""Every public name has a text and an example.

`python -m tests.test_public_names` lists the names without an example.
"""

from __future__ import annotations

import re
from typing import Any

from docs.builder.names import names_of, public_modules
from docs.builder.texts import text
from tests.support.paths import ROOT
from xlamini import errors
from xlamini.core.flags.config import Flag


def members() -> dict[str, Any]:
    """Every public name, whole, with what it names."""
    return {f"{m.__name__}.{name}": getattr(m, name) for m in public_modules().values() for name in names_of(m)}


def without_example() -> list[str]:
    """Names without a session in their text. A primitive is no function, and the page of flags shows how one is set."""
    called = {name: m for name, m in members().items() if not name.endswith("_p") and not isinstance(m, Flag)}
    return [name for name, member in called.items() if ">>>" not in text(name, member)]


def test_every_public_name_has_a_text() -> None:
    assert [name for name, member in members().items() if not text(name, member)] == []


def test_every_public_name_has_an_example() -> None:
    assert without_example() == []


def test_the_page_of_errors_has_every_class() -> None:
    page = (ROOT / "docs/reference/errors.md").read_text()
    shown = re.findall(r"exception:: xlamini\.errors\.(\w+)", page)
    assert sorted([*shown, "JaxprTypeError"]) == sorted(errors.__all__)


if __name__ == "__main__":
    print(*without_example(), sep="\n")
