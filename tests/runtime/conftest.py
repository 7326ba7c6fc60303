"""What several tests of programs on disk share."""
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from xlamini import config
from xlamini.runtime.files import disk_cache
from xlamini.staging.run import programs

FLAGS = """compilation_cache_dir enable_compilation_cache compilation_cache_max_size raise_persistent_cache_errors
persistent_cache_min_compile_time_secs persistent_cache_min_entry_size_bytes""".split()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_cache: None) -> Iterator[Path]:
    """The cache is on, in an empty folder, in a process that has said, counted and jitted nothing yet."""
    programs.unshare()
    before = {name: config.read(name) for name in FLAGS}
    monkeypatch.setattr(disk_cache, "_memory", disk_cache._Memory())
    config.update("jax_compilation_cache_dir", str(tmp_path / "programs"))
    yield tmp_path / "programs"
    for name, value in before.items():
        config.update(name, value)
