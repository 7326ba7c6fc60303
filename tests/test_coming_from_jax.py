"""The page for readers from JAX lists every flag, and what it does here."""

from __future__ import annotations

import pytest

from tests.support.paths import ROOT
from xlamini.core.flags.config import flags
from xlamini.core.flags.jax_flags import NO_EFFECT, NO_MEANING

PAGE = (ROOT / "docs" / "coming-from-jax.md").read_text()


@pytest.mark.parametrize("name", sorted(flags))
def test_the_page_lists_the_flag(name: str) -> None:
    table = NO_EFFECT | NO_MEANING
    assert (f"| `{name}` | {table[name][1]} |" if name in table else f"`{name}`") in PAGE
