"""The folder that is used unasked: among the user's caches, small, silent, and used by nobody else."""
from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.support.paths import ROOT
from xlamini import P, cache, config, lax, make_mesh, numpy as jnp
from xlamini.core.flags import cache_flags
from xlamini.doctor import facts
from xlamini.runtime.devices.nvidia import LIBRARIES, LibraryVersion
from xlamini.runtime.execution.executable import Executable
from xlamini.runtime.files import cache_folder, disk_cache, disk_key
from xlamini.staging.run import programs

X = np.arange(3, dtype=np.float32)
posix = pytest.mark.skipif(os.name != "posix", reason="users have no numbers")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, no_cache: None) -> Iterator[Path]:
    """A folder that nobody named, where every program is kept, in a process that has said and jitted nothing yet."""
    where = tmp_path / "caches" / "programs"
    programs.unshare()
    monkeypatch.setattr(disk_cache, "_memory", disk_cache._Memory())
    monkeypatch.setattr(cache_flags.compilation_cache_dir, "default", str(where))
    config.update("compilation_cache_dir", str(where))
    config.update("persistent_cache_min_compile_time_secs", 0)
    yield where
    config.update("persistent_cache_min_compile_time_secs", None)


def step(x: Any) -> Any:
    return jnp.sum(jnp.tanh(x) * 5)


def run(x: Any = X) -> float:
    """What a function that is jitted anew computes."""
    return float(xlamini.jit(lambda y: step(y))(x))


def hits_and_misses() -> tuple[int, int]:
    return cache.stats().hits, cache.stats().misses


@pytest.mark.skipif(os.name != "posix", reason="paths are written with slashes")
@pytest.mark.parametrize(
    ("system", "environment", "expected"),
    [
        ("linux", {"XDG_CACHE_HOME": "/caches"}, "/caches/xlamini/programs"),
        ("linux", {"XDG_CACHE_HOME": "caches"}, "/users/me/.cache/xlamini/programs"),
        ("linux", {}, "/users/me/.cache/xlamini/programs"),
        ("darwin", {}, "/users/me/Library/Caches/xlamini/programs"),
        ("win32", {"LOCALAPPDATA": "/local"}, "/local/xlamini/programs"),
        ("win32", {}, None),
    ],
)
def test_where_it_is(system: str, environment: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/users/me")
    assert cache_flags.users_folder(environment, system) == expected


@posix
def test_a_user_without_a_home_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "expanduser", lambda path: path)
    assert cache_flags.users_folder({}, "linux") is None


def test_limits_are_those_of_the_folder(folder: Path) -> None:
    config.update("persistent_cache_min_compile_time_secs", None)
    assert (cache_flags.least_seconds(), cache_flags.most_bytes()) == (0.2, 2**30)
    config.update("compilation_cache_dir", str(folder.parent / "named"))
    assert (cache_flags.least_seconds(), cache_flags.most_bytes()) == (0.0, 2**32)
    with cache_flags.persistent_cache_min_compile_time_secs(3), cache_flags.compilation_cache_max_size(-1):
        assert (cache_flags.least_seconds(), cache_flags.most_bytes()) == (3.0, -1)


def test_a_program_is_kept_there(folder: Path) -> None:
    assert run() == run() and hits_and_misses() == (1, 1)
    assert cache.directory() == str(folder) and len(cache.entries()) == 1
    if os.name == "posix":
        assert folder.stat().st_mode & 0o777 == 0o700
    found = facts.programs_on_disk()
    assert found["folder"] == str(folder) and found["size"].startswith("1 programs, 0.0 MB of 1024 MB at most")


def test_what_compiles_fast_is_not_kept_nor_is_the_source_read(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config.update("persistent_cache_min_compile_time_secs", 1000)
    monkeypatch.setattr(disk_key, "source", None)
    run()
    assert hits_and_misses() == (0, 1) and not folder.exists()


def test_what_compiles_fast_is_explained(folder: Path) -> None:
    config.update("persistent_cache_min_compile_time_secs", 1000)
    assert cache.explain(step, X) == (
        "step is not in the cache, which is empty (programs that compile in less than 1000 s are not kept)"
    )


def test_another_source_of_the_library_replaces_a_program(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run()
    monkeypatch.setattr(disk_key, "source", lambda: "another")
    assert "source: another; there " in cache.explain(step, X)
    run(), run()
    assert hits_and_misses() == (1, 2) and cache.stats().refused == 0
    assert [entry.parts["source"] for entry in cache.entries()] == ["another"]


# Whose it is.


@posix
def test_a_folder_of_another_user_is_not_used(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run()
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    before = sorted(folder.iterdir())
    run(), run(X[:2])
    assert cache.directory() is None and hits_and_misses() == (0, 1) and sorted(folder.iterdir()) == before
    assert "belongs to another user (number " in cache.explain(step, X)
    assert "belongs to another user (number " in facts.programs_on_disk()["off"]


@posix
def test_a_folder_is_not_made_in_that_of_another_user(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if os.geteuid() == 0:
        os.chown(folder.parent.parent, 4712, -1)
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    run()
    assert cache.directory() is None and not folder.parent.exists()
    assert f"{folder.parent.parent} belongs to another user" in cache_folder.why_off()


@posix
@pytest.mark.parametrize("mode", [0o770, 0o707])
def test_a_folder_that_others_may_write_is_not_used(folder: Path, mode: int) -> None:
    folder.mkdir(parents=True)
    folder.chmod(mode)
    run()
    assert not list(folder.iterdir()) and "other users may write to" in cache.explain(step, X)
    config.update("compilation_cache_dir", f"{folder}/.")
    run()
    assert len(list(folder.iterdir())) == 1, "a folder that was named is used"


@posix
def test_a_link_is_no_folder(folder: Path, tmp_path: Path) -> None:
    folder.parent.mkdir()
    folder.symlink_to(tmp_path)
    assert cache.directory() is None and "is no folder" in cache_folder.why_off()


@posix
def test_links_in_it_are_not_followed(folder: Path, tmp_path: Path) -> None:
    run()
    (entry,) = folder.iterdir()
    entry.rename(tmp_path / "elsewhere")
    entry.symlink_to(tmp_path / "elsewhere")
    with pytest.warns(UserWarning, match="is a link; it is compiled anew"):
        run()
    assert hits_and_misses() == (0, 2) and not entry.is_symlink()


# What goes wrong.


def test_a_folder_that_cannot_be_made_is_tried_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a warning, as nobody asked for it."""
    tried: list[Executable] = []
    serialize = Executable.serialize
    monkeypatch.setattr(Executable, "serialize", lambda self: tried.append(self) or serialize(self))
    folder.parent.write_text("a file")
    monkeypatch.setattr(cache_folder, "_refusal", lambda where: None)
    run(), run(X[:2])
    assert len(tried) == 1 and cache.stats().stored == 0


def test_a_damaged_file_is_gone_though_warnings_are_errors(folder: Path) -> None:
    run()
    (entry,) = folder.iterdir()
    entry.write_bytes(b"broken")
    with pytest.raises(UserWarning, match="does not begin as an entry does"):
        run()
    assert not entry.exists() and run() == run()


def test_no_cache_while_the_flag_is_off(folder: Path) -> None:
    with cache_flags.enable_compilation_cache(False):
        run()
        assert cache.explain(step, X) == "the cache is off: flag enable_compilation_cache is off"
    assert not folder.exists()


# Programs for several devices.


def test_programs_over_a_mesh(folder: Path) -> None:
    mesh = make_mesh((8,), ("x",), axis_types=xlamini.sharding.AxisType.Auto)
    x = xlamini.device_put(np.arange(8, dtype=np.float32), xlamini.NamedSharding(mesh, P("x")))

    def total(a: Any) -> Any:
        return lax.psum(jnp.sum(a * a), "x")

    for expected in ((0, 1), (1, 1)):
        found = xlamini.jit(xlamini.shard_map(lambda a: total(a), mesh=mesh, in_specs=P("x"), out_specs=P()))(x)
        assert hits_and_misses() == expected and np.asarray(found) == 140


def test_what_accelerators_depend_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(disk_key.nvidia, "versions", lambda: [LibraryVersion(LIBRARIES[1], 91200, 91000)])
    monkeypatch.setenv("LIBTPU_INIT_ARGS", "--a=1")
    found = {name: disk_key._beside_jaxlib(SimpleNamespace(platform=name)) for name in ("gpu", "tpu", "cpu")}  # type: ignore[arg-type]
    assert found == {"gpu": {"libraries": "cuDNN 91200"}, "tpu": {"LIBTPU_INIT_ARGS": "--a=1"}, "cpu": {}}


def test_an_error_of_a_lowering_rule_is_raised_where_users_lower(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call lowers only what is not on disk; `lower` lowers."""
    traced = xlamini.jit(lambda x: step(x) - 3).trace(X)
    monkeypatch.setattr("xlamini.lowering.module.lower_jaxpr", lambda *args: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        traced.lower()


# Other processes.

PROGRAM = """
import json, numpy as np, xlamini
from xlamini import cache
value = float(xlamini.jit(lambda x: (x * x + 3).sum())(np.arange(3.0, dtype=np.float32)))
print(json.dumps([value, cache.stats().hits, cache.stats().misses]))
"""


def in_a_process(home: Path, **flags: str) -> list[float]:
    own = {name: value for name, value in os.environ.items() if not name.startswith(("XLAMINI_", "XDG_"))}
    variables = {"HOME": str(home), "PYTHONPATH": str(ROOT), **{f"XLAMINI_{name}": v for name, v in flags.items()}}
    command = [sys.executable, "-W", "error", "-c", PROGRAM]
    return json.loads(subprocess.run(command, env=own | variables, check=True, capture_output=True, text=True).stdout)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the folder is elsewhere")
def test_a_users_processes(tmp_path: Path) -> None:
    """The program compiles too fast to be kept; with a limit of 0 it is; and nothing is read while the cache is off."""
    assert in_a_process(tmp_path, PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="100") == [14.0, 0, 1]
    assert list(tmp_path.iterdir()) == []
    kept = {"PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    assert [in_a_process(tmp_path, **kept), in_a_process(tmp_path, **kept)] == [[14.0, 0, 1], [14.0, 1, 0]]
    assert len(list((tmp_path / ".cache" / "xlamini" / "programs").iterdir())) == 1
    assert in_a_process(tmp_path, ENABLE_COMPILATION_CACHE="0") == [14.0, 0, 0]


@pytest.mark.full
def test_tests_leave_the_users_folder_alone() -> None:
    """Those of processes without this library's variables too."""
    code = "from xlamini.core.flags.cache_flags import compilation_cache_dir as d; print(repr(d.value), d.default)"
    bare = {name: value for name, value in os.environ.items() if not name.startswith("XLAMINI_")}
    for environment in (os.environ, bare):
        done = subprocess.run(
            [sys.executable, "-c", code], env={**environment, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True,
            check=True,
        )
        value, default = done.stdout.split()
        assert environment is bare or value == "''"
        assert Path(default).is_relative_to(ROOT) or sys.platform != "linux"
