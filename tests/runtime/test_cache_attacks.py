"""What somebody may put under the name of an entry of the cache folder: nothing is read, written or changed through it.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from xlamini import cache, config
from xlamini.runtime.files import disk_cache
from xlamini.runtime.files.disk_key import Key
from xlamini.runtime.files.file_format import replace_file, write_file

KEY = Key("step", {"module": "text"})
ABOUT = {"arguments": "float32[3]", "results": "float32[]", "equations": {}}
PRECIOUS = b"the only copy"

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names, nor links without rights"),
    pytest.mark.filterwarnings("ignore:compilation cache"),
]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_cache: None) -> Iterator[Path]:
    before = config.read("compilation_cache_dir")
    monkeypatch.setattr(disk_cache, "_memory", disk_cache._Memory())
    config.update("jax_compilation_cache_dir", str(tmp_path / "programs"))
    (tmp_path / "programs").mkdir()
    yield tmp_path / "programs"
    config.update("jax_compilation_cache_dir", before)


def stored() -> bool:
    before = cache.stats().stored
    disk_cache.store(KEY, b"machine code", 1.0, ABOUT)
    return cache.stats().stored > before


def of_socket(path: Path, victim: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        here = os.getcwd()
        os.chdir(path.parent)  # names of sockets are short
        try:
            made.bind(path.name)
        finally:
            os.chdir(here)


def of_loop(path: Path, victim: Path) -> None:
    path.symlink_to(path)


def of_chain(path: Path, victim: Path) -> None:
    (path.parent / "between").symlink_to(victim)
    path.symlink_to("between")


def of_full_folder(path: Path, victim: Path) -> None:
    path.mkdir()
    (path / "file").write_bytes(b"")


ATTACKS: dict[str, Callable[[Path, Path], object]] = {
    "a link": lambda path, victim: path.symlink_to(victim),
    "a relative link": lambda path, victim: path.symlink_to(os.path.relpath(victim, path.parent)),
    "a chain of links": of_chain,
    "a link to itself": of_loop,
    "a link to nothing": lambda path, victim: path.symlink_to(victim.with_name("none")),
    "a link to a folder": lambda path, victim: path.symlink_to(victim.parent),
    "a link to a device": lambda path, victim: path.symlink_to("/dev/null"),
    "a second name": lambda path, victim: os.link(victim, path),
    "a pipe": lambda path, victim: os.mkfifo(path),
    "a socket": of_socket,
    "an empty folder": lambda path, victim: path.mkdir(),
    "a full folder": of_full_folder,
    "an empty file": lambda path, victim: path.write_bytes(b""),
    "a huge file": lambda path, victim: (path.touch(), os.truncate(path, 2**40)),
    "a file without rights": lambda path, victim: (path.write_bytes(b"x"), path.chmod(0)),
}


@pytest.mark.parametrize("name", ATTACKS)
@pytest.mark.parametrize("reads", [True, False])
def test_nothing_is_written_through_what_is_there(folder: Path, name: str, reads: bool) -> None:
    victim = folder.parent / "precious.txt"
    victim.write_bytes(PRECIOUS)
    before = victim.stat()
    path = Path(disk_cache.path_of(KEY))
    ATTACKS[name](path, victim)
    assert list(cache.entries(folder)) == []
    if reads:
        assert disk_cache.find(KEY) is None
    was_stored = stored()
    after = victim.stat()
    assert victim.read_bytes() == PRECIOUS and after.st_mtime_ns == before.st_mtime_ns and after.st_ino == before.st_ino
    assert not victim.with_name("none").exists() and not list(folder.glob("*.tmp"))
    if "folder" in name and not path.is_file():
        assert not was_stored and path.is_dir()
    else:
        assert was_stored and path.is_file() and not path.is_symlink() and disk_cache.find(KEY) is not None


def test_somebody_who_swaps_entries_for_links_meanwhile_changes_nothing(folder: Path) -> None:
    victim = folder.parent / "precious.txt"
    victim.write_bytes(PRECIOUS)
    before, path, over = victim.stat(), Path(disk_cache.path_of(KEY)), threading.Event()

    def swap() -> None:
        while not over.is_set():
            link = folder / "link"
            link.symlink_to(victim)
            link.replace(path)

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(150):
            stored()
            found = disk_cache.find(KEY)
            if found is not None:
                disk_cache.record_hit(KEY, found[0], 0.0)
    finally:
        over.set()
        thread.join()
    after = victim.stat()
    assert victim.read_bytes() == PRECIOUS and after.st_mtime_ns == before.st_mtime_ns


_AS_ANOTHER_USER = """
import os, sys
folder, victim = sys.argv[1:]
from xlamini import cache, config
from xlamini.runtime.files import disk_cache
from xlamini.runtime.files.disk_key import Key
config.update("jax_compilation_cache_dir", folder)
key = Key("step", {"module": "text"})
os.symlink(victim, disk_cache.path_of(key))      # by root
os.lchown(disk_cache.path_of(key), 12346, 12346)
os.setegid(12345); os.seteuid(12345)
print(disk_cache.find(key), end=" ")
disk_cache.store(key, b"machine code", 1.0, {"arguments": "", "results": "", "equations": {}})
names = os.listdir(folder)
print(cache.stats().stored, open(victim).read(), names == [os.path.basename(disk_cache.path_of(key))])
"""


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can be several users")
def test_a_link_of_another_user_in_a_folder_of_all_is_left(tmp_path: Path) -> None:
    victim, shared = tmp_path / "precious.txt", tmp_path / "shared"
    victim.write_bytes(PRECIOUS)
    os.chown(victim, 12345, 12345)
    shared.mkdir()
    shared.chmod(0o1777)
    for above in (tmp_path, *tmp_path.parents[:-2]):
        above.chmod(above.stat().st_mode | 0o011)
    program = [sys.executable, "-W", "ignore", "-c", _AS_ANOTHER_USER, str(shared), str(victim)]
    found = subprocess.run(program, capture_output=True, text=True, check=True, timeout=60)
    assert found.stdout.strip() == f"None 0 {PRECIOUS.decode()} True"


def test_a_file_that_the_user_names_may_be_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "file")
    write_file(tmp_path / "link", b"1")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "file").read_bytes() == b"1"
    replace_file(str(tmp_path / "link"), b"2")
    assert not (tmp_path / "link").is_symlink() and (tmp_path / "file").read_bytes() == b"1"
