"""How sessions in docstrings and pages are compared with what they print."""

from __future__ import annotations

import doctest
import re

from xlamini.core.errors.error_page import PAGE

FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
_NOTE = re.compile(rf"^See {re.escape(PAGE)}#.*\n", re.MULTILINE)


class Checker(doctest.OutputChecker):
    """An example shows the message of an error without the note that names its place in the documentation."""

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        return super().check_output(want, _NOTE.sub("", got), optionflags)
