"""Files in the cache folder that are no entries of ours: a pipe, a huge file, a header that was changed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import cache, config
from xlamini.core.flags.config import flags
from xlamini.runtime.files import disk_cache, disk_entry
from xlamini.runtime.files.disk_key import Key

KEY = Key("step", {"module": "text"})
ABOUT = {"arguments": "float32[3]", "results": "float32[]", "equations": {}}


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_cache: None) -> Iterator[tuple[Path, Any]]:
    """The path of an entry in a folder of its own, and its key."""
    before = config.read("compilation_cache_dir")
    monkeypatch.setattr(disk_cache, "_memory", disk_cache._Memory())
    config.update("jax_compilation_cache_dir", str(tmp_path))
    disk_cache.store(KEY, b"machine code", 1.0, ABOUT)
    assert disk_cache.find(KEY) is not None
    yield Path(disk_cache.path_of(KEY)), KEY
    config.update("jax_compilation_cache_dir", before)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_a_pipe_is_not_waited_for(stored: tuple[Path, Any]) -> None:
    path, known = stored
    path.unlink()
    os.mkfifo(path)
    assert list(cache.entries(path.parent)) == []
    with pytest.warns(UserWarning, match="is no regular file; it is compiled anew"):
        assert disk_cache.find(known) is None
    assert not path.exists()


def test_an_entry_that_is_too_large_is_not_read(stored: tuple[Path, Any]) -> None:
    path, known = stored
    os.truncate(path, 2**36)  # a file with a hole, which takes no space
    with pytest.warns(UserWarning, match="is larger than any program; it is compiled anew"):
        assert disk_cache.find(known) is None


def test_an_entry_with_a_flipped_bit_is_not_listed(stored: tuple[Path, Any]) -> None:
    path, _ = stored
    assert len(list(cache.entries(path.parent))) == 1
    data = bytearray(path.read_bytes())
    data[data.index(b'"arguments"') + 1] ^= 1
    path.write_bytes(data)
    assert list(cache.entries(path.parent)) == []


def test_contents_are_compared_with_what_is_compiled(stored: tuple[Path, Any]) -> None:
    """The program of an entry is put into another one."""
    x, folder = np.arange(3, dtype=np.float32), stored[0].parent
    stored[0].unlink()

    def run(factor: int) -> list[float]:
        return xlamini.jit(lambda x: x * np.float32(factor))(x).tolist()

    assert (run(2), run(3)) == ([0, 2, 4], [0, 3, 6])
    files = {path: disk_entry.unpacked(path.read_bytes())[0] for path in folder.glob("*.xlamini")}
    assert len(files) == 2
    with flags["compilation_cache_check_contents"](True):
        assert run(2) == [0, 2, 4] and cache.stats().hits == 1
        one, other = files
        one.write_bytes(disk_entry.packed(files[one], disk_entry.unpacked(other.read_bytes())[1]))
        with pytest.warns(UserWarning, match="is another program than XLA compiles now; it is compiled anew"):
            assert (run(2), run(3)) == ([0, 2, 4], [0, 3, 6])
        assert (run(2), run(3)) == ([0, 2, 4], [0, 3, 6])
