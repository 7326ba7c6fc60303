"""Every public function and class has a docstring; the number of those without an example may only fall.

`python -m tests.test_public_names` lists those without an example.
"""

from __future__ import annotations

import inspect
import re
from collections import Counter
from typing import Any

from docs.builder.jaxlib_names import text_of
from docs.builder.names import is_value, names_of, public_modules
from tests.support.paths import ROOT
from xlamini import errors
from xlamini.core.config import Flag
from xlamini.core.primitive import Primitive

WITHOUT_EXAMPLE = 398
"""How many public functions and classes have no example: a number that only falls."""


def members() -> dict[str, Any]:
    """Every public name that can have a docstring, by its whole name."""
    named = {f"{m.__name__}.{name}": getattr(m, name) for m in public_modules().values() for name in names_of(m)}
    return {name: member for name, member in named.items() if not is_value(member)}


def text(member: Any) -> str:
    """The docstring, or the site's text for what cannot have one: primitives, and classes of jaxlib."""
    return inspect.getdoc(member) or (member.name if isinstance(member, Primitive) else text_of(member))


def without_example() -> list[str]:
    """Functions and classes without a session in their docstring; primitives and flags are called in other ways."""
    called = {name: m for name, m in members().items() if not name.endswith("_p") and not isinstance(m, Flag)}
    return [name for name, member in called.items() if ">>>" not in text(member)]


def test_every_public_name_has_a_docstring() -> None:
    assert [name for name, member in members().items() if not text(member)] == []


def test_names_without_example_become_fewer() -> None:
    missing = without_example()
    modules = Counter(name.rpartition(".")[0] for name in missing)
    assert len(missing) <= WITHOUT_EXAMPLE, modules


def test_the_page_of_errors_has_every_class() -> None:
    page = (ROOT / "docs/reference/errors.md").read_text()
    shown = re.findall(r"exception:: xlamini\.errors\.(\w+)", page)
    assert sorted([*shown, "JaxprTypeError"]) == sorted(errors.__all__)


if __name__ == "__main__":
    print(*without_example(), sep="\n")
