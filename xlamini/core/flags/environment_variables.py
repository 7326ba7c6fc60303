"""Environment variables `XLAMINI_…` and `JAX_…`: warnings of values and of names that no flag can have.

Such a variable is ignored, so that a slip in a shell's configuration stops neither a program nor the doctor that is to
diagnose it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable

PREFIX, JAX_PREFIX = "XLAMINI_", "JAX_"

ignored: list[str] = []
"""The variables that this process ignores, with the reason."""

# Read by `distributed.initialize` and by the benchmarks; all others are flags.
_NOT_FLAGS = ("COORDINATOR_ADDRESS", "NUM_PROCESSES", "PROCESS_ID", "BENCH_JAX_PYTHON")
# Read by `distributed.initialize`, as JAX's does.
_JAX_NOT_FLAGS = ("COORDINATOR_ADDRESS", "COORDINATOR_BIND_ADDRESS", "LOCAL_DEVICE_IDS")


def warn_of_value(variable: str, text: str, accepted: str, default: object) -> None:
    """Warn of a value that a flag cannot have, and say which ones it can, and that it has its default."""
    _ignore(f"environment variable {variable}={text!r} is ignored, and {default!r} is used: it takes {accepted}")


def warn_of_names(environment: Iterable[str], flags: Iterable[str]) -> None:
    """Warn of each variable that begins with XLAMINI_ or JAX_ and that nothing reads, with the nearest name."""
    names = [*map(str.upper, flags)]
    for prefix, others in ((PREFIX, _NOT_FLAGS), (JAX_PREFIX, _JAX_NOT_FLAGS)):
        read = [*names, *others]
        for variable in sorted(v for v in environment if v.startswith(prefix)):
            name = variable.removeprefix(prefix)
            if name not in read:
                _ignore(f"environment variable {variable} is ignored: there is no such flag{near(name, read, prefix)}")


def near(word: object, words: Iterable[str], prefix: str = "") -> str:
    """The end of a message about a wrong word: which of the right `words` may be meant."""
    import difflib

    close = difflib.get_close_matches(str(word), list(words), n=2)
    return f"; did you mean {' or '.join(prefix + word for word in close)}?" if close else ""


def _ignore(text: str) -> None:
    ignored.append(text)
    warnings.warn(text, UserWarning, stacklevel=3)
