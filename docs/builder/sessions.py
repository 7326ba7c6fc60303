"""How sessions in docstrings and pages are taken apart, and compared with what they print."""

from __future__ import annotations

import doctest
import re

from xlamini.core.errors.error_page import PAGE

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
PROMPTS = (">>> ", "... ")
_NOTE = re.compile(rf"^See {re.escape(PAGE)}#.*\n", re.MULTILINE)


class Checker(doctest.OutputChecker):
    """An example shows the message of an error without the note that names its place in the documentation."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return super().check_output(want, _NOTE.sub("", got), optionflags)


def parts(session: str) -> tuple[str, str]:
    """The code of a session without its prompts, and what it prints.

    >>> parts(">>> x = 1\\n>>> print(x)\\n1")
    ('x = 1\\nprint(x)', '1')
    """
    lines = session.splitlines()
    code = [line[4:] for line in lines if line.startswith(PROMPTS)]
    printed = [line for line in lines if not line.startswith(PROMPTS)]
    return "\n".join(code), "\n".join(printed)
