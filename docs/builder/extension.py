"""What the site adds to Sphinx: a reference of all public names, tables of flags, pictures, programs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docs.builder import docstrings, reference, sources
from docs.builder.beside_directive import Beside
from docs.builder.flags import FlagTable
from docs.builder.picture_directive import Picture
from docs.builder.results_directive import Results

COPIES = {"CONTRIBUTING.md": "contributing.md", "CHANGELOG.md": "changes.md", "SECURITY.md": "security.md"}


def setup(app: Any) -> dict[str, Any]:
    """Sphinx calls this when it loads the extension."""
    app.connect("builder-inited", lambda app: reference.write(Path(app.srcdir) / "reference" / "api"))
    app.connect("source-read", _link_to_pages_of_the_root)
    app.connect("autodoc-process-docstring", docstrings.process)
    app.connect("viewcode-follow-imported", sources.defining_module)
    app.connect("html-page-context", sources.lighten)
    app.add_directive("beside", Beside)
    app.add_directive("flags", FlagTable)
    app.add_directive("results", Results)
    app.add_directive("picture", Picture)
    return {"version": "1", "parallel_read_safe": True, "parallel_write_safe": True}


def _link_to_pages_of_the_root(app: Any, page: str, source: list[str]) -> None:
    """`docs/inside` has a copy of these pages; the links in the sources work where the repository is read."""
    for name, copy in COPIES.items():
        source[0] = source[0].replace(f"](../{name})", f"](/inside/{copy})")
