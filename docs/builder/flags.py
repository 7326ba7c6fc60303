"""The tables of flags on the page of flags: read from the flags themselves, so that the page has every one."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

import xlamini.runtime.arrays.transfer_guards  # noqa: F401 - defines flags
from xlamini.core.flags import compile_flags, device_flags
from xlamini.core.flags.config import ALIASES, DISPATCH, TRACE, Flag, flags
from xlamini.core.flags.jax_flags import NO_EFFECT, AcceptedFlag

CACHE = ("compilation_cache", "enable_compilation_cache", "persistent_cache", "raise_persistent")
KINDS = ("devices", "compiling", "meaning", "looking", "warns", "silent")


def kind_of(flag: Flag) -> str:
    """Which table of the page has the flag: one of `KINDS`."""
    if isinstance(flag, AcceptedFlag):
        return "warns" if flag.name in NO_EFFECT else "silent"
    if flag in vars(device_flags).values() or flag.affects == DISPATCH:
        return "devices"
    if flag in vars(compile_flags).values() or flag.name.startswith(CACHE):
        return "compiling"
    return "meaning" if flag.affects == TRACE else "looking"


def table(rows: Iterable[Flag]) -> str:
    """A table in Markdown: each flag with its values, its default and what it does."""
    lines = ["| flag | values | default | what it does |", "|---|---|---|---|"]
    return "\n".join(lines + [f"| {' | '.join(_cells(flag))} |" for flag in rows])


class FlagTable(SphinxDirective):
    """`{flags} devices`: the table of one kind."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        kind = self.arguments[0]
        if kind not in KINDS:
            raise self.error(f"there is no kind {kind!r} of flags; the kinds are {', '.join(KINDS)}")
        rows = sorted((flag for flag in flags.values() if kind_of(flag) == kind), key=lambda flag: flag.name)
        return self.parse_text_to_nodes(table(rows))


def _cells(flag: Flag) -> tuple[str, str, str, str]:
    others = "".join(f", `{alias}`" for alias, name in ALIASES.items() if name == flag.name)
    about = flag.note if isinstance(flag, AcceptedFlag) else flag.help
    return f"`{flag.name}`{others}", _values(flag), f"`{flag.default!r}`", about.replace("|", "\\|")


def _values(flag: Flag) -> str:
    if len(flag.choices) > 6:
        return f"a text; `{flag.choices[0]}`, `{flag.choices[1]}`, … ({len(flag.choices)} in all)"
    kinds: dict[Any, str] = {bool: "`True`, `False`", int: "an integer", float: "a number", str: "a text"}
    values = ", ".join(f"`{choice}`" for choice in flag.choices) or kinds.get(flag.type, "any")
    return f"{values}, `None`" if flag.optional and flag.type is not object else values
