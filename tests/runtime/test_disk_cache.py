"""Programs kept on disk: found again by other processes, told apart, and never trusted when they are damaged."""
from __future__ import annotations

import errno
import gc
import importlib
import json
import os
import subprocess
import sys
import time
import weakref
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.support.paths import ROOT
from xlamini import cache, config, lax, numpy as jnp, random
from xlamini.runtime.execution.executable import Executable
from xlamini.runtime.files import disk_cache, disk_entry, disk_key

jit_module = importlib.import_module("xlamini.staging.run.jit.jitted_function")


def step(x: Any) -> Any:
    return jnp.sum(jnp.tanh(x) * 3)


def same_step_elsewhere(x: Any) -> Any:
    doubled = jnp.tanh(x)
    return jnp.sum(doubled * 3)


X = np.arange(3, dtype=np.float32)


def hits_and_misses() -> tuple[int, int]:
    return cache.stats().hits, cache.stats().misses


def only_entry(folder: Path) -> Path:
    (found,) = folder.glob("*.xlamini")
    return found


def run_fresh(fun: Any, *args: Any, **options: Any) -> Any:
    """Run a function that is jitted anew, so that what is known of it is what is on disk."""
    return xlamini.jit(lambda *xs: fun(*xs), **options)(*args)


def number(fun: Any, *args: Any, **options: Any) -> float:
    """The same as a number: to compare arrays would be one more program."""
    return float(run_fresh(fun, *args, **options))


# What is found again.


def test_a_program_is_compiled_once(folder: Path) -> None:
    expected = number(step, X)
    assert hits_and_misses() == (0, 1) and cache.stats().stored == 1
    assert number(step, X) == expected
    assert number(same_step_elsewhere, X) == expected, "the lines a program stands in do not count"
    assert hits_and_misses() == (2, 1)
    assert cache.stats().seconds_saved > 0 and cache.stats().bytes_read > 0


PROGRAM = """
import json, numpy as np, xlamini
from xlamini import cache, numpy as jnp, random
from xlamini.core.flags.config import config
{blank}
def loss(w, x, key):
    noise = random.normal(key, (3,))
    return jnp.sum(jnp.tanh(w * x + noise) ** 2)
w, x = np.arange(3, dtype=np.float32), np.ones((2, 3), np.float32)
grads = xlamini.jit(xlamini.vmap(xlamini.grad(loss), in_axes=(None, 0, None)))(w, x, random.key(3))
eager = xlamini.grad(loss)(w, x[0], random.key(4))
solved = jnp.linalg.solve(np.array([[2., 1.], [1., 3.]], np.float32), np.ones(2, np.float32))
given = jnp.ones(4)
xlamini.jit(lambda a: a * 2, donate_argnums=0)(given)
found = cache.stats()
print(json.dumps([grads.tolist(), eager.tolist(), solved.tolist(), given.is_deleted(), found.hits, found.misses]))
"""


def start(folder: Path, blank: str = "") -> subprocess.Popen:
    environment = {**os.environ, "XLAMINI_COMPILATION_CACHE_DIR": str(folder), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "error", "-c", PROGRAM.format(blank=blank)]
    return subprocess.Popen(command, env=environment, cwd=folder.parent, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
def test_other_processes_at_once_and_later(tmp_path: Path) -> None:
    """Two write the same programs at the same time; a third one, with other line numbers, finds them all."""
    folder = tmp_path / "programs"
    with start(folder) as one, start(folder) as two:
        found = [json.loads(process.communicate()[0]) for process in (one, two)]
    (*values, hits, misses), (*others, _, _) = found
    assert values == others and misses > 0
    with start(folder, "\n\n") as later:
        assert json.loads(later.communicate()[0]) == [*values, hits + misses, 0]
    assert values[-1] is True, "the donated argument"
    assert all(disk_entry.unpacked(path.read_bytes()) for path in folder.iterdir())
    if os.name == "posix":
        assert folder.stat().st_mode & 0o777 == 0o700


def test_a_hit_is_not_lowered(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = number(step, X)
    monkeypatch.setattr("xlamini.lowering.module.lower_jaxpr", None)
    assert number(step, X) == expected and hits_and_misses() == (1, 1)


@pytest.mark.full
def test_a_program_lets_go_of_its_module(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []
    original = jit_module.CompileRequest
    monkeypatch.setattr(
        jit_module, "CompileRequest", lambda *args: made.append(weakref.ref(lowered := original(*args))) or lowered
    )
    jitted = xlamini.jit(step)
    jitted(X)
    gc.collect()
    assert [known() for known in made] == [None]
    assert float(jitted(X)) == number(step, X)


def test_stages_while_the_cache_is_on(folder: Path) -> None:
    run_fresh(step, X)
    lowered = xlamini.jit(step).lower(X)
    compiled = lowered.compile()
    assert "stablehlo.reduce" in lowered.as_text() and "HloModule" in compiled.as_text()
    assert compiled.cost_analysis()["flops"] > 0
    assert hits_and_misses() == (1, 1)


def test_what_is_lowered_later_is_lowered_as_it_was_traced(folder: Path) -> None:
    def fun(x: Any) -> Any:
        return jnp.tanh(x * random.uniform(random.key(0), (3,)))

    with config_flag("enable_x64")(True):
        wide = xlamini.jit(fun).lower(np.arange(3.0))
    assert "f64" in wide.as_text()
    compiled = wide.compile()
    with config_flag("enable_x64")(True):
        assert np.array_equal(*(np.asarray(f(np.arange(3.0))) for f in (compiled, xlamini.jit(fun))))
    assert hits_and_misses() == (1, 1)


def test_types_and_shardings_of_outputs(folder: Path) -> None:
    def outputs(x: Any, key: Any) -> Any:
        return x, 2.0 * 3, random.split(key), jnp.zeros(2, jnp.int32), x.astype(jnp.bfloat16)

    first, second = (run_fresh(outputs, X, random.key(1)) for _ in range(2))
    assert hits_and_misses() == (1, 1)
    for a, b in zip(first, second, strict=True):
        assert (a.aval, a.sharding, a.committed) == (b.aval, b.sharding, b.committed)
        assert np.array_equal(*(jnp.asarray(random.key_data(x) if a is first[2] else x) for x in (a, b)))


def test_committed_arguments_give_committed_results(folder: Path) -> None:
    there = xlamini.device_put(X, xlamini.devices()[0])
    assert [run_fresh(step, there).committed for _ in range(2)] == [True, True]


def test_donated_memory_is_reused(folder: Path) -> None:
    for _ in range(2):
        given = jnp.ones(1000)
        at = given.unsafe_buffer_pointer()
        taken = run_fresh(lambda a: a + 1, given, donate_argnums=0)
        assert given.is_deleted() and taken.unsafe_buffer_pointer() == at
    assert hits_and_misses()[0] == 1


def test_captured_arrays_are_not_part_of_a_program(folder: Path) -> None:
    results = [run_fresh(lambda x, table=jnp.arange(3.0) + i: jnp.sum(x * table), X) for i in range(2)]
    assert list(map(float, results)) == [5.0, 8.0]
    assert hits_and_misses()[0] >= 1


@pytest.mark.parametrize(
    "transformed",
    [
        xlamini.grad(step),
        xlamini.vmap(xlamini.grad(lambda x: jnp.sin(x) * x)),
        xlamini.hessian(step),
        lambda x: lax.scan(lambda c, y: (c * y, c + y), 1.0, x)[1],
        lambda x: lax.cond(x.sum() > 1, jnp.sin, jnp.cos, x),
        lambda x: xlamini.grad(xlamini.checkpoint(step))(x),
        lambda x: lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + 1, c[1] * 2), (0, x))[1],
    ],
)
def test_transformed_programs(folder: Path, transformed: Any) -> None:
    first, again = run_fresh(transformed, X), run_fresh(transformed, X)
    assert hits_and_misses() == (1, 1)
    assert np.array_equal(first, again)


# What tells programs apart.


def other_compiler_options() -> Any:
    return run_fresh(step, X, compiler_options={"xla_backend_optimization_level": 1})


def under(name: str, value: Any) -> Any:
    with config_flag(name)(value):
        return run_fresh(step, X)


def config_flag(name: str) -> Any:
    from xlamini.core.flags.config import flags

    return flags[name]


OTHERS = {
    "other types": lambda: run_fresh(step, X.astype(np.int32)),
    "other shapes": lambda: run_fresh(step, X[:2]),
    "a weak type": lambda: run_fresh(lambda x: x + 1, 1.0) + run_fresh(lambda x: x + 1, np.float32(1)),
    "64 bits": lambda: under("enable_x64", True),
    "precision of products": lambda: under("default_matmul_precision", "float32"),
    "compiler options": other_compiler_options,
    "another number": lambda: run_fresh(lambda x: jnp.sum(jnp.tanh(x) * 4), X),
    "a negative zero": lambda: run_fresh(lambda x: x * 0.0, X)[0] + run_fresh(lambda x: x * -0.0, X)[0],
    "donation": lambda: run_fresh(lambda x: x * 2, jnp.ones(3)) + run_fresh(
        lambda x: x * 2, jnp.ones(3), donate_argnums=0
    ),
}


@pytest.mark.parametrize("other", OTHERS)
def test_what_differs_is_compiled(folder: Path, other: str) -> None:
    run_fresh(step, X)
    OTHERS[other]()
    assert hits_and_misses()[0] == 0


def test_options_of_xla_from_the_environment(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run_fresh(step, X)
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=false")
    run_fresh(step, X)
    (folder / "flags.txt").write_text("--b=1\n--a=2")
    monkeypatch.setenv("XLA_FLAGS", str(folder / "flags.txt"))
    assert disk_key.xla_flags() == "--a=2 --b=1"
    assert hits_and_misses() == (0, 2)


@pytest.mark.parametrize("part", ["cpu", "jaxlib", "xlamini", "device", "threads", "platform"])
def test_another_machine_or_version(folder: Path, part: str, monkeypatch: pytest.MonkeyPatch) -> None:
    run_fresh(step, X)
    known = disk_key._surroundings(xlamini.devices()[0])
    monkeypatch.setattr(disk_key, "_surroundings", lambda device: {**known, part: "another"})
    assert f"{part}: another; there {known[part]}" in cache.explain(step, X)
    run_fresh(step, X)
    assert hits_and_misses() == (0, 2)


def test_features_of_the_processor(tmp_path: Path) -> None:
    def cpu(text: str) -> str:
        (tmp_path / "info").write_text(text)
        return disk_key.cpu(str(tmp_path / "info"))

    plain = cpu("model\t: 1\nflags\t: sse avx\n\nmodel\t: 2\n")
    assert plain == cpu("model\t: 1\ncpu MHz\t: 2599\nflags\t: avx sse\n") != cpu("model\t: 1\nflags\t: sse avx avx2\n")
    assert "of machine" in disk_key.cpu(str(tmp_path / "none"))


# What is not kept.


def test_programs_that_call_python_are_not_kept(folder: Path) -> None:
    def calls(x: Any) -> Any:
        return xlamini.pure_callback(lambda v: np.asarray(v) + 1, xlamini.ShapeDtypeStruct((3,), np.float32), x)

    assert np.asarray(run_fresh(calls, X))[0] == 1.0
    assert cache.stats().stored == 0 and not folder.exists()
    assert "calls Python functions" in cache.explain(calls, X)


def test_a_param_of_this_process_alone(folder: Path) -> None:
    """A user's function among the params: the program is known by what it is lowered to."""

    def kept(primitive: Any, *_: Any, **params: Any) -> bool:
        return primitive.name == "tanh"

    for _ in range(2):
        run_fresh(xlamini.checkpoint(step, policy=kept), X)
    assert hits_and_misses() == (1, 1)
    assert "program" in cache.entries()[0].parts and cache.entries()[0].parts["program"].startswith("module ")


def test_what_is_too_quick_or_too_small(folder: Path) -> None:
    with config_flag("persistent_cache_min_compile_time_secs")(1000):
        run_fresh(step, X)
    with config_flag("persistent_cache_min_entry_size_bytes")(2**20):
        run_fresh(step, X)
    with config_flag("enable_compilation_cache")(False):
        run_fresh(step, X)
        assert cache.directory() is None
    assert cache.stats().stored == 0
    assert not list(folder.glob("*"))


# What is damaged.


@pytest.fixture
def stored(folder: Path) -> tuple[Path, disk_key.Key]:
    """The file and the key of one program."""
    run_fresh(step, X)
    path = only_entry(folder)
    header = disk_entry.unpacked(path.read_bytes())[0]
    naming = {name: value for name, value in header["parts"].items() if name != "source"}
    return path, disk_key.Key(header["name"], naming, of_source=True)


def test_every_damaged_byte_is_noticed(stored: tuple[Path, disk_key.Key]) -> None:
    path, known = stored
    good = path.read_bytes()
    assert disk_cache.find(known) is not None
    for offset in [*range(120), *range(120, len(good), 31), len(good) - 1]:
        path.write_bytes(good[:offset] + bytes([good[offset] ^ 0x10]) + good[offset + 1 :])
        disk_cache._memory.said.clear()
        with pytest.warns(UserWarning, match=r"does not begin as an entry does|has another checksum"):
            assert disk_cache.find(known) is None
        assert not path.exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda data: b"", "does not begin as an entry does"),
        (lambda data: data[:50], "has another checksum than it should"),
        (lambda data: data[: len(data) // 2], "has another checksum than it should"),
        (lambda data: data + b"x", "has another checksum than it should"),
        (lambda data: data.replace(b"format 1", b"format 0"), "does not begin as an entry does"),
        (lambda data: b"\x7fELF" + data, "does not begin as an entry does"),
        (lambda data: disk_entry.packed({}, b"x"), "has a header that is not complete"),
        (lambda data: of_another(data), "is of another program than its name says"),
        (lambda data: disk_entry.packed(disk_entry.unpacked(data)[0], b"no program"), "cannot be loaded: "),
        (lambda data: disk_entry.packed(disk_entry.unpacked(data)[0], b""), "cannot be loaded: "),
    ],
)
def test_damaged_files_are_said_once_and_replaced(stored: tuple[Path, Any], change: Any, said: str) -> None:
    path, _ = stored
    path.write_bytes(change(path.read_bytes()))
    with pytest.warns(UserWarning, match=f"compilation cache: the entry .* {said}.*; it is compiled anew") as caught:
        assert float(run_fresh(step, X)) == pytest.approx(float(step(X)), rel=1e-6)
    assert caught[0].filename == __file__
    assert cache.stats().refused == 1
    run_fresh(step, X)
    assert cache.stats().hits == 1


def of_another(data: bytes) -> bytes:
    header, program = disk_entry.unpacked(data)
    return disk_entry.packed({**header, "parts": {**header["parts"], "cpu": "a newer one"}}, program)


def test_the_same_damage_is_said_once(stored: tuple[Path, Any]) -> None:
    path, _ = stored
    with pytest.warns(UserWarning) as caught:
        for _ in range(3):
            path.write_bytes(b"broken")
            run_fresh(step, X)
    assert len(caught) == 1


def test_errors_instead_of_warnings(stored: tuple[Path, Any]) -> None:
    stored[0].write_bytes(b"broken")
    config.update("jax_raise_persistent_cache_errors", True)
    with pytest.raises(RuntimeError, match="does not begin as an entry does"):
        run_fresh(step, X)


@pytest.mark.skipif(os.name != "posix", reason="users have no numbers")
def test_what_others_may_have_written(stored: tuple[Path, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    path, known = stored
    path.chmod(0o662)
    with pytest.warns(UserWarning, match="may be written by other users"):
        assert disk_cache.find(known) is None
    run_fresh(step, X)
    disk_cache._memory.said.clear()
    monkeypatch.setattr(disk_cache.os, "geteuid", lambda: 4711)
    monkeypatch.setattr(disk_cache.os, "fstat", lambda number: os.stat_result((0o100600, 1, 1, 1, 12, 0, 0, 0, 0, 0)))
    with pytest.warns(UserWarning, match="belongs to another user"):
        assert disk_cache.find(known) is None


def test_a_folder_that_cannot_be_made(folder: Path) -> None:
    folder.write_text("a file")
    with pytest.warns(UserWarning) as caught:
        assert float(run_fresh(step, X)) and float(run_fresh(same_step_elsewhere, X[:2])) >= 0
    assert len({str(w.message) for w in caught}) == len(caught)
    assert any("nothing can be stored in" in str(w.message) for w in caught)


def test_a_full_disk(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*names: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(disk_cache.os, "replace", full)
    with pytest.warns(UserWarning, match=r"nothing can be stored in .*No space left") as caught:
        run_fresh(step, X)
        run_fresh(step, X[:2])
    assert len(caught) == 1 and not list(folder.iterdir())


def test_a_platform_whose_programs_cannot_be_stored(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def serialize(self: Any) -> bytes:
        raise xlamini.errors.JaxRuntimeError("UNIMPLEMENTED")

    monkeypatch.setattr(Executable, "serialize", serialize)
    with pytest.warns(UserWarning, match="programs of platform cpu cannot be stored: UNIMPLEMENTED") as caught:
        assert number(step, X) and number(step, X)
    assert len(caught) == 1 and cache.entries() == []


# How much is kept.


def test_what_was_not_used_for_longest_goes(folder: Path) -> None:
    def keep(i: int) -> Path:
        before = set(folder.glob("*"))
        run_fresh(lambda x: x + i, X)
        (made,) = set(folder.glob("*")) - before
        os.utime(made, (time.time() - 1000 + i,) * 2)
        return made

    first, second, third = map(keep, range(3))
    run_fresh(lambda x: x + 0, X)
    abandoned = folder / "writing-x.tmp"
    abandoned.write_text("")
    os.utime(abandoned, (0, 0))
    config.update("jax_compilation_cache_max_size", 3 * first.stat().st_size + 100)
    disk_cache._memory.room.clear()
    fourth = keep(3)
    assert first.exists() and fourth.exists() and not second.exists() and not third.exists() and not abandoned.exists()


def test_any_number_may_be_kept(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config.update("jax_compilation_cache_max_size", -1)
    for i in range(3):
        run_fresh(lambda x, i=i: x + i, X)
    assert len(cache.entries()) == 3
    monkeypatch.setattr(disk_cache, "MOST_ENTRIES", 2)
    disk_cache._memory.room.clear()
    run_fresh(lambda x: x + 10, X)
    assert len(cache.entries()) == 1


# Looking inside.


def test_entries_and_clear(folder: Path) -> None:
    xlamini.jit(step)(X)
    (entry,) = cache.entries()
    assert (entry.name, entry.size) == ("step", only_entry(folder).stat().st_size)
    assert entry.about["arguments"] == "float32[3]" and entry.about["equations"]["tanh"] == 1
    assert entry.parts["jaxlib"] and entry.compile_seconds > 0 and abs(entry.made - time.time()) < 600
    assert repr(entry).startswith("<step: ") and " kB, compiled in " in repr(entry)
    for name in ("broken.xlamini", "notes.txt"):
        (folder / name).write_text("stays")
    assert cache.entries() == [entry]
    assert cache.clear() == 2 and [path.name for path in folder.iterdir()] == ["notes.txt"]


def test_explain(folder: Path, optimized: None) -> None:
    jitted = xlamini.jit(step)
    assert cache.explain(jitted, X) == "step is not in the cache, which is empty"
    jitted(X)
    assert cache.explain(jitted, X).startswith("step is in the cache: <step: ")
    assert "the types of the arguments: float32[2]; there float32[3]" in cache.explain(step, X[:2])
    assert "equations: +1 neg" in cache.explain(lambda x: -step(x), X)
    assert "in another order or with other parameters" in cache.explain(lambda x: jnp.sum(jnp.tanh(x) * 4), X)
    with_options = xlamini.jit(step, compiler_options={"xla_backend_optimization_level": 1})
    assert "compiler options: xla_backend_optimization_level=1; there none" in cache.explain(with_options, X)
    with config_flag("enable_x64")(True):
        assert "enable_x64=True" in cache.explain(step, X)
