"""Text for a console: what its encoding lacks is written in other signs, so that printing never fails.

Windows gives a program whose output goes to a file or a pipe an encoding of few signs, without bars and boxes. Whatever
the library prints, or hands out to be printed, passes here.
"""
from __future__ import annotations

import sys

_NEAR = str.maketrans({
    **dict.fromkeys("─‾", "-"), **dict.fromkeys("┌┐└┘├┤┬┴┼", "+"), **dict.fromkeys("█▇▆▅▄", "#"),
    **dict.fromkeys("▃▂▁", "_"), "│": "|", "…": "~", "×": "x",
})  # fmt: skip


def printable(text: str) -> str:
    """The text in signs that stdout can write, one for one; those without a likeness as escapes.

    >>> printable("a │ b")
    'a │ b'
    """
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"  # a stream in memory has none
    try:
        text.encode(encoding)
        return text
    except UnicodeEncodeError:
        return text.translate(_NEAR).encode(encoding, "backslashreplace").decode(encoding)
