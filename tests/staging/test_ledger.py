"""The ledger of compilations as an object: seconds, texts, limits, `max_compiles`, the report of a process."""

from __future__ import annotations

import gc
import json
import os
import re
import subprocess
import sys
import time
import weakref
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import debug, lax, numpy as jnp
from xlamini.errors import TooManyCompilationsError
from xlamini.staging.compile import ledger

X = np.arange(3, dtype=np.float32)


def fresh(factor: float) -> Any:
    """A jitted function with a code of its own, so that the ledger has nothing of it."""
    return xlamini.jit(eval(compile(f"lambda x: x * {factor}", f"fresh{factor}", "eval")))


def test_a_hit_makes_no_entry():
    f = fresh(1009)
    for _ in range(3):
        f(X)
    f(X[:2]), f(X)
    assert [entry.cause.kind for entry in f.compilations()] == ["first call", "shape"]


def test_seconds_of_each_phase(no_cache):
    f = fresh(1013)
    f(X)
    (entry,) = f.compilations()
    assert set(entry.seconds) == {"trace", "rewrite", "lower", "compile"} and min(entry.seconds.values()) > 0
    assert entry.total == pytest.approx(sum(entry.seconds.values()))
    assert entry.traced and entry.compiled and not entry.from_disk


def test_seconds_do_not_count_what_is_inside_twice(no_cache):
    @xlamini.jit
    def inner(x):
        time.sleep(0.05)
        return x * 1019

    @xlamini.jit
    def outer(x):
        return inner(x) + 1

    outer(X)
    ((inside,), (outside,)) = inner.compilations(), outer.compilations()
    assert inside.traced and not inside.compiled and inside.seconds["trace"] >= 0.05
    assert outside.compiled and outside.seconds["trace"] < 0.05


def test_a_function_that_was_traced_inside_of_another_is_compiled_for_itself():
    inner = fresh(1021)
    xlamini.jit(lambda x: inner(x) + 1)(X)
    assert inner(X).tolist() == [0, 1021, 2042]
    first, second = inner.compilations()
    assert (first.traced, first.compiled, second.traced, second.compiled) == (True, False, False, True)
    assert second.cause == first.cause


def test_programs_from_disk(no_cache, tmp_path):
    with xlamini.core.flags.config.flags["compilation_cache_dir"](str(tmp_path)):
        f = fresh(1031)
        f(X)
        f.clear_cache()
        f(X)
    assert [entry.from_disk for entry in f.compilations()] == [False, True]


def test_eager_transformations_are_entered():
    def energy_of_1033(x):
        return (x * 1033).sum()

    for _ in range(3):
        xlamini.vmap(xlamini.grad(energy_of_1033))(X)
    (entry,) = debug.compilations(lambda entry: entry.name == "energy_of_1033")
    assert entry.cause.kind == "outside of jit" and entry.where.startswith(__file__)
    lax.fori_loop(0, 3, lambda i, x: x * 1039 + i, np.ones((5, 1039), np.float32))  # no other test has this shape
    last = debug.compilations()[-1]
    assert last.cause.kind == "outside of jit" and last.where.startswith(__file__)


def test_operations_are_entered_as_the_librarys_own():
    jnp.sinh(np.ones(1049, np.float32))
    entry = debug.compilations()[-1]
    assert entry.is_own and entry.name == "sinh"
    assert "operations outside of jit: " in repr(debug.compilations())
    assert "sinh" not in repr(debug.compilations(lambda entry: entry.is_own))


def test_a_failed_trace_makes_no_entry():
    f = xlamini.jit(lambda x: x + jnp.ones(1051))
    with pytest.raises(TypeError):
        f(X)
    assert list(f.compilations()) == []
    f(X[:1])
    assert [entry.cause.kind for entry in f.compilations()] == ["first call"]


def test_entries_print_well():
    f = fresh(1061)
    f(X), f(X[:2])
    assert re.fullmatch(
        r"<lambda> at \S+test_ledger.py:\d+ \(test_entries_print_well\): (compiled|loaded from disk), \S+ s\n"
        r"  shape: x is float32\[2\], before float32\[3\]\n  to avoid it, pad x to a few shapes, such as \(3,\)",
        repr(f.compilations()[-1]),
    )
    lines = repr(f.compilations()).split("\n")
    assert lines[0].startswith("compilations: 2 compiled, 0 traced only, ")
    assert lines[1].startswith("<lambda> (fresh1061:1): 2 compiled")
    assert lines[3].strip() == "first call: it has not been called before"
    assert repr(f.compilations()[:0]) == "compilations: 0 compiled, 0 traced only, 0.000 s ()"


def test_entries_are_data():
    f = fresh(1063)
    f(X), f({"a": X}["a"].astype(np.int32))
    found = json.loads(json.dumps(f.compilations().as_dict()))
    assert (found["compiled"], found["traced"]) == (2, 2)
    entry = found["entries"][1]
    assert entry["cause"]["path"] == "x" and entry["cause"]["kind"] == "dtype" and entry["line"] == 1
    assert sum(found["seconds"].values()) == pytest.approx(sum(e.total for e in f.compilations()))


def test_several_differences():
    f = xlamini.jit(lambda x, y: (x * 1069, y))
    f(X, X), f(X[:1], 1.0)
    cause = f.compilations()[-1].cause
    assert cause.text == "x is float32[1], before float32[3]"
    assert cause.also == ("y is weakly typed float32[], before float32[3]",)


def test_the_nearest_call_is_named():
    f = xlamini.jit(lambda x, y: (x * 1087, y))
    f(X, X), f(1.0, 1.0), f(X[:1], X)
    assert f.compilations()[-1].cause.text == "x is float32[1], before float32[3]"


@pytest.mark.full
def test_it_keeps_nothing_alive():
    class Big:
        def __repr__(self):
            raise RuntimeError("not to be printed")

    def run():
        big, array = Big(), jnp.ones(1091)
        f = xlamini.jit(lambda x, big: x * 1091 + array, static_argnums=1)
        f(np.float32(2), big), f(2.0, Big())
        assert f.compilations()[-1].cause.kind == "static identity"
        return weakref.ref(big), weakref.ref(array), weakref.ref(f)

    references = run()
    gc.collect()
    assert [reference() for reference in references] == [None] * 3


def test_it_is_bounded():
    assert ledger._entries.maxlen == ledger.MOST == 4096


@pytest.mark.full
def test_cleared_caches_leave_it():
    def f(x):
        return x * 1093

    xlamini.jit(f)(X)
    xlamini.clear_caches()
    g = xlamini.jit(f)
    g(X)
    assert [entry.cause.kind for entry in g.compilations()] == ["first call", "cleared caches"]


# --- max_compiles


def test_one_compilation_too_many():
    f = xlamini.jit(lambda batch: batch["x"] * 1097, max_compiles=2)
    f({"x": X}), f({"x": X[:2]}), f({"x": X})
    for _ in range(2):
        with pytest.raises(TooManyCompilationsError) as caught:
            f({"x": X[:1]})
        assert str(caught.value) == (
            "<lambda> would be compiled once more, but max_compiles=2. shape: batch['x'] is float32[1], before "
            "float32[2]. To avoid it, pad batch['x'] to a few shapes, such as (2,)"
        )
    assert f({"x": X}).tolist() == [0, 1097, 2194]


def test_max_compiles_under_transformations():
    f = xlamini.jit(lambda x: jnp.sum(x * 1103), max_compiles=1)
    f(X)
    assert xlamini.jit(lambda x: f(x[:2]))(X) == 1103  # part of another program
    assert xlamini.grad(f)(X[:2]).tolist() == [1103, 1103]
    with pytest.raises(TooManyCompilationsError, match="compiled once more"):
        f(X[:2])


@pytest.mark.parametrize("bad", [-1, 1.0, True, "2"])
def test_a_wrong_number_of_compilations(bad):
    with pytest.raises(TypeError, match="max_compiles must be a number of compilations or None, got"):
        xlamini.jit(lambda x: x, max_compiles=bad)


# --- the report of a process

PROGRAM = """
import xlamini, numpy as np
step = xlamini.jit(lambda x: x * 2)
step(np.ones(3)), step(np.ones(4))
"""


@pytest.mark.parametrize("value", ["1", "0"])
def test_the_report_of_a_process(value):
    environment = {**os.environ, "XLAMINI_REPORT": value}
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout == ""
    assert ("shape: x is float32[4], before float32[3]" in done.stderr) is (value == "1")
    assert done.stderr.startswith("compilations: 2 compiled, 0 traced only") is (value == "1")
