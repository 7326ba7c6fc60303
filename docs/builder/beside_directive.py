"""The directive `{beside}`: a session of Python whose last line prints a program, as code beside that program.

The tests of pages run the session as it stands, so neither side can be untrue.
"""

from __future__ import annotations

from docutils import nodes
from sphinx.util.docutils import SphinxDirective

from docs.builder.sessions import parts


class Beside(SphinxDirective):
    """`{beside} WHAT THEY PRINT` around the session. The code has no prompts, so that it can be copied."""

    required_arguments, final_argument_whitespace, has_content = 1, True, True

    def run(self) -> list[nodes.Node]:
        code, program = parts("\n".join(self.content))
        left = nodes.literal_block(code, code, language="python")
        right = nodes.literal_block(program, program, language="text")
        words, messages = self.parse_inline(self.arguments[0])
        return [nodes.container("", left, nodes.paragraph("", "", *words), right, classes=["beside"]), *messages]
