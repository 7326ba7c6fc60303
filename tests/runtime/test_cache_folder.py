"""Files in the cache folder that are no entries of ours: a pipe, a huge file, a header that was changed."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from xlamini import cache, config
from xlamini.runtime.files import disk_cache
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
