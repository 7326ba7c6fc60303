"""The directive `{pages}`: a toctree of all other pages of the folder, which may have none yet."""

from __future__ import annotations

import posixpath

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.directives.other import TocTree


class Pages(TocTree):
    """Sphinx warns of a pattern that no page matches; this directive is empty then."""

    has_content = False

    def run(self) -> list[nodes.Node]:
        here = self.env.docname
        self.env.note_reread()
        if not any(name != here and posixpath.dirname(name) == posixpath.dirname(here) for name in self.env.found_docs):
            return []
        self.options["glob"] = None
        self.content = StringList(["*"], source=here)
        return super().run()
