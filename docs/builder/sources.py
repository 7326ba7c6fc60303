"""Where the source of a public name is, and pages of source code that are small enough to have hundreds of them."""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any

from docs.builder.names import sources_of

_PLAIN = re.compile(r'<span class="(?:n|nn|o|p|w)">([^<]*)</span>')
"""Marks of names, signs and spaces, which the style shows like text: more than half of the bytes of a page."""

_BACK = re.compile(r'<a class="viewcode-back"[^>]*>[^<]*</a>')
"""Links back to the reference: Sphinx makes them for one of the modules that export a name, with another's name."""


def defining_module(app: Any, module: str, attribute: str) -> str:
    """Sphinx's event `viewcode-follow-imported`: the module that defines a name, not the one that exports it.

    What jaxlib defines has no source to show, so its public module stands for it, where Sphinx finds none.
    """
    face = importlib.import_module(module)
    name = attribute.partition(".")[0]
    source = sources_of(face).get(name) or getattr(inspect.unwrap(getattr(face, name)), "__module__", "")
    return source if source.startswith("xlamini") else module


def lighten(app: Any, page: str, template: str, context: dict[str, Any], doctree: Any) -> str | None:
    """Sphinx's event `html-page-context`: source code has a page without the sidebars."""
    if not page.startswith("_modules/"):
        return None
    context["body"] = _PLAIN.sub(r"\1", _BACK.sub("", context["body"]))
    return "source.html"
