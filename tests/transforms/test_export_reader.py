"""Exported functions of unknown makers are read by a child process, which may crash, hang, or serve many files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import export
from xlamini.errors import LoadError
from xlamini.lowering import module_check
from xlamini.runtime.files import reader_process


def file_of(fun: Any, *args: Any) -> bytes:
    return bytes(export.export(xlamini.jit(fun))(*args).serialize())


@pytest.fixture
def blob(fresh_reader: None) -> bytes:
    """A file that nobody has read."""
    made = file_of(lambda x: x * 2, 1.0)
    module_check.checked.clear()
    return made


@pytest.fixture
def fresh_reader() -> Iterator[None]:
    """The next file starts a reader, and the test's own reader serves no other test."""
    module_check.checked.clear()
    reader_process.stop()
    yield
    reader_process.stop()
    module_check.checked.clear()


def test_bytes_that_crash_the_reader_crash_another_process(blob: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader_process, "_PROGRAM", "import os; os.abort()")
    with pytest.raises(LoadError, match="makes the reader of this jaxlib crash"):
        export.deserialize(blob)


def test_files_without_an_end_are_given_up(blob: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    hang = "import faulthandler, time; faulthandler.dump_traceback_later(0.2, exit=True); time.sleep(60)"
    monkeypatch.setattr(reader_process, "_PROGRAM", hang)
    with pytest.raises(LoadError, match="or run without end"):
        export.deserialize(blob)


def test_one_reader_serves_all_files(fresh_reader: None) -> None:
    files = [file_of(lambda x, n=n: x * n, 1.0) for n in (2, 3, 4)]
    module_check.checked.clear()
    found = export.deserialize(files[0])
    process = reader_process._reader.process
    assert found.call(1.0) == 2 and process is not None and process.poll() is None
    assert export.deserialize(files[1]).call(1.0) == 3
    assert reader_process._reader.process is process
    process.kill()  # as a harmful file, or a minute without files
    assert export.deserialize(files[2]).call(1.0) == 4
    assert reader_process._reader.process not in (process, None)


def test_an_interrupt_does_not_give_a_file_the_answer_of_another(
    fresh_reader: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (file_of(lambda x: x * 2, x) for x in (1.0, np.ones(3)))
    module_check.checked.clear()
    with monkeypatch.context() as patched:
        patched.setattr(reader_process.json, "loads", lambda _: raise_interrupt())
        with pytest.raises(KeyboardInterrupt):
            export.deserialize(first)
    assert export.deserialize(second).call(np.ones(3)).tolist() == [2, 2, 2]


def raise_interrupt() -> None:
    raise KeyboardInterrupt
