"""The child process in which files of unknown makers are read first; it starts with the first one and serves the next.

If it dies of a file, a new one reads that file again before the file is blamed: an earlier file may have harmed it, and
it ends by itself when it has nothing to do.
"""

from __future__ import annotations

import atexit
import json
import os
import subprocess
import sys
import threading
from contextlib import suppress
from typing import Any

from xlamini.core import LoadError
from xlamini.core.waits import announce
from xlamini.runtime.files import module_reader

_PROGRAM = "import runpy, sys; sys.path[:] = {path!r}; runpy.run_path({file!r}, run_name='__main__')"


_WAITS = "an exported file has waited for the process that reads its StableHLO"


class _ReaderProcess:
    """The process, if one runs, and the lock of those that ask it."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[bytes] | None = None
        self.lock = threading.Lock()


_reader = _ReaderProcess()


def answer_of_child(artifact: bytes, task: str = "read") -> dict[str, Any]:
    """What the child found in an artifact, or its `error`; LoadError if the child dies of it."""
    with announce(_WAITS), _reader.lock:
        is_new = _reader.process is None
        found = _asked(task, artifact)
        if found is None and not is_new:
            found = _asked(task, artifact)
        if found is None:
            raise LoadError(
                "the StableHLO makes the reader of this jaxlib crash, or run without end; it is damaged, or made to do "
                "harm"
            )
        return found


def _asked(task: str, artifact: bytes) -> dict[str, Any] | None:
    """The answer of the process, which is started if there is none; None if it dies."""
    if _reader.process is None:
        _reader.process = _started()
    try:
        return _conversed(_reader.process, task, artifact)
    except BaseException as error:
        stop()  # after Ctrl-C too: the answer that is to come is not that of the next file
        if isinstance(error, OSError | ValueError):
            return None
        raise


def _started() -> subprocess.Popen[bytes]:
    program = _PROGRAM.format(path=sys.path, file=module_reader.__file__)
    pipe = subprocess.PIPE
    try:
        return subprocess.Popen([sys.executable, "-c", program], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL)
    except OSError as error:
        raise LoadError(f"the process that reads the StableHLO first did not start: {error}") from None


def _conversed(process: subprocess.Popen[bytes], task: str, artifact: bytes) -> dict[str, Any]:
    """The answer to one request; OSError or ValueError if the process died."""
    to, back = process.stdin, process.stdout
    assert to is not None and back is not None
    to.write(f"{task} {len(artifact)}\n".encode() + artifact)
    to.flush()
    return json.loads(back.readline())


def stop() -> None:
    """End the process."""
    process, _reader.process = _reader.process, None
    if process is None:
        return
    process.kill()
    for pipe in (process.stdin, process.stdout):
        with suppress(OSError):
            pipe.close()  # type: ignore[union-attr]
    process.wait()


def _forget() -> None:
    """A forked process starts a child of its own, and has no thread that would release the lock."""
    global _reader
    _reader = _ReaderProcess()


atexit.register(stop)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
