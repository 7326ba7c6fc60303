"""A report that may be shown to others: no home folder, no name of a user or a host, no secret."""
from __future__ import annotations

import getpass
import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path

from xlamini.doctor.facts import SECRET

_CREDENTIALS = re.compile(r"//[^/@\s]+@")
_ADDRESS = re.compile(r"^(\s*\w*(?:ADDRESS|HOST|HOSTNAMES)\w*\s+)\S.*$", re.MULTILINE)
"""A line that shows a variable whose value names machines."""
_SHORTEST = 4
"""The fewest characters of a secret that is looked for: a shorter value, such as 1, is in every report."""


def for_an_issue(text: str) -> str:
    """The report as a block of Markdown, without what is nobody else's business."""
    return f"```text\n{without_names(text)}\n```"


def without_names(text: str) -> str:
    """The text, in which what tells the machine and its user apart is replaced by what it is.

    >>> from pathlib import Path
    >>> without_names(f"library {Path.home()}/plugins/a.so")
    'library ~/plugins/a.so'
    """
    for value, stand_in in _hidden():
        text = re.sub(rf"(?<![A-Za-z0-9]){re.escape(value)}(?![A-Za-z0-9])", stand_in, text)
    return _ADDRESS.sub(r"\1(set)", _CREDENTIALS.sub("//<hidden>@", text))


def _hidden() -> Iterator[tuple[str, str]]:
    """What is hidden and what stands in its place: the longer first, as a home folder ends with the user's name."""
    secrets = [v for k, v in os.environ.items() if SECRET.search(k) and len(v) >= _SHORTEST and "/" not in v]
    yield from ((value, "<hidden>") for value in sorted(secrets, key=len, reverse=True))
    for folder in {str(Path.home()), os.path.realpath(Path.home())} - {"/"}:
        yield folder, "~"
    host = socket.gethostname()
    for name in dict.fromkeys([host, host.partition(".")[0]]):
        if name:
            yield name, "<host>"
    if (user := _user()) is not None:
        yield user, "<user>"


def _user() -> str | None:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return None  # a process whose number has no name
