"""Memos: they are listed, they honour their limits, and what is computed does not change when they are emptied."""
from __future__ import annotations

import gc
import sys
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from tests.support.checks import assert_close
from xlamini import checkpoint, custom_jvp, grad, jit, jvp, lax, vmap
from xlamini.core.caching import memo
from xlamini.core.caching.memo import Memo, OwnedMemo, memoised
from xlamini.core.program.equation_kind import derived, kinds
from xlamini.runtime.execution.program_limit import crowd
from xlamini.staging.run.eager import program_cache
from xlamini.staging.run.programs import shared

pytestmark = pytest.mark.full  # each empties the caches of the whole process

RAMP = np.linspace(0.1, 0.9, 4, dtype=np.float32)


@pytest.fixture(autouse=True)
def own_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that memos of tests are listed during their test only."""
    monkeypatch.setattr(memo, "_registry", dict(memo._registry))


# --- the classes


def test_an_entry_becomes_the_newest_of_its_owner() -> None:
    class Owner:
        def __init__(self) -> None:
            self.entries: OrderedDict[str, int] = OrderedDict(a=1, b=2)

    letters, owner = OwnedMemo("test: letters", 2, "entries"), Owner()
    assert letters.newest(owner, "a") == 1 and letters.newest(owner, "missing") is None
    letters.keep(owner, "c", 3)
    assert list(owner.entries) == ["a", "c"]


def test_a_memo_drops_its_oldest_entry() -> None:
    squares = Memo("test: squares", 3)
    for i in range(5):
        assert squares.get_or_make(i, lambda i=i: i * i) == i * i
    assert list(squares.table) == [2, 3, 4]
    assert squares.get(4) == 16 and squares.get(0) is None and squares.get(0, -1) == -1
    row = xlamini.debug.memos().as_dict()["test: squares"]
    assert row == {"entries": 3, "hits": 1, "limit": 3}
    squares.clear()
    assert (len(squares), squares.hits) == (0, 0)


def test_values_may_weigh_more_than_one() -> None:
    words = Memo("test: words", 10, weight=len)
    for word in ("four", "three", "two"):
        words.keep(word, word)
    assert list(words.table) == ["three", "two"]
    assert words.keep("far too long", "far too long") == "far too long"
    assert not words.table


class Owner:
    """An object with a table."""

    def __init__(self) -> None:
        self.table: dict[Any, Any] = {}


def test_owned_entries_die_with_their_object() -> None:
    owned = OwnedMemo("test: owned", 2, "table")
    one, other = Owner(), Owner()
    for i in range(4):
        assert owned.keep(one, i, -i) == -i
    owned.keep(other, 0, 0)
    assert list(one.table) == [2, 3] and len(owned) == 3
    del other
    gc.collect()
    assert len(owned) == 2
    owned.clear()
    assert not one.table
    owned.keep(one, 7, 7)
    assert len(owned) == 1
    assert xlamini.debug.memos().as_dict()["test: owned"] == {"entries": 1, "hits": None, "limit": 2}


def test_a_memoised_function() -> None:
    runs = []

    @memoised("test: doubled", 2)
    def doubled(x: int) -> int:
        runs.append(x)
        return 2 * x

    assert [doubled(x) for x in (1, 2, 1, 3, 1)] == [2, 4, 2, 6, 2]
    assert runs == [1, 2, 3]
    assert xlamini.debug.memos().as_dict()["test: doubled"] == {"entries": 2, "hits": 2, "limit": 2}
    xlamini.clear_caches()
    assert doubled(1) == 2 and runs == [1, 2, 3, 1]


def test_a_name_is_taken_once() -> None:
    Memo("test: one", 1)
    with pytest.raises(AssertionError, match="test: one"):
        Memo("test: one", 1)


def test_threads_may_share_a_memo() -> None:
    shared = Memo("test: shared", 8)
    failures = []

    def work(start: int) -> None:
        try:
            for i in range(2000):
                assert shared.get_or_make((start + i) % 50, lambda: "made") == "made"
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(n * 13,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and len(shared) <= 8


# --- the library's memos


def test_the_table_lists_what_a_program_fills() -> None:
    xlamini.clear_caches()
    gradient = grad(lambda x: jnp.sum(jnp.sin(x) * x))
    for _ in range(3):
        gradient(RAMP)
    jit(jnp.cos)(RAMP)
    table = xlamini.debug.memos()
    rows = table.as_dict()
    filled = "jaxpr: rewrites and facts", "kind: equations", "kind: rewrites of one equation", "program: by structure"
    for name in filled:
        assert rows[name]["entries"] > 0, name
    assert rows["program: by structure"]["hits"] > 0
    assert rows["kind: equations"]["hits"] is None
    lines = str(table).splitlines()
    assert lines[0].split() == ["memo", "entries", "hits", "limit"]
    assert len(lines) == len(rows) + 1 and max(map(len, lines)) <= 120
    assert list(rows) == sorted(rows)


@pytest.mark.full
def test_clear_caches_empties_every_memo() -> None:
    step = jit(grad(lambda x: jnp.sum(jnp.tanh(x[1:]) * 2.0)))
    step(RAMP), vmap(jnp.sin)(RAMP), jnp.einsum("i,i->", RAMP, RAMP), jnp.add(RAMP, 1), jnp.asarray(RAMP).at[0].set(3)
    before = xlamini.debug.memos().as_dict()
    assert before["dispatch: signatures in C++"]["entries"] > 0 and before["call: library functions"]["entries"] > 0
    xlamini.clear_caches()
    rows = xlamini.debug.memos().as_dict()
    assert {name: row["entries"] for name, row in rows.items() if row["entries"]} == {}
    assert {row["hits"] for row in rows.values()} == {0, None}


def test_compiled_programs_are_freed() -> None:
    xlamini.clear_caches()
    gc.collect()
    before = len(crowd.loaded)
    fun = jit(lambda x: jnp.sin(x) + 3)
    fun(RAMP), jnp.cosh(jnp.asarray(RAMP)), [vmap(jnp.tan)(RAMP) for _ in range(3)]
    assert len(crowd.loaded) > before
    xlamini.clear_caches()
    gc.collect()
    assert len(crowd.loaded) <= before


@custom_jvp
def cubed(x: Any) -> Any:
    return x**3


cubed.defjvp(lambda primals, tangents: (cubed(primals[0]), 3 * primals[0] ** 2 * tangents[0]))


def looped(x: Any) -> Any:
    return lax.scan(lambda c, _: (jnp.sin(c) * x, c), x, None, length=3)[0]


def branched(x: Any) -> Any:
    return lax.cond(x > 0.5, jnp.cos, lambda y: y * y, x)


FUNCTIONS: list[Callable[[Any], Any]] = [
    jnp.tanh, cubed, looped, branched, checkpoint(lambda x: jnp.sin(jnp.sin(x))), jit(lambda x: jnp.exp(x) * x),
]  # fmt: skip
NESTINGS: dict[str, Callable[[Any], Any]] = {
    "grad": lambda f: lambda x: sum(grad(f)(v) for v in x),
    "vmap grad": lambda f: vmap(grad(f)),
    "grad vmap": lambda f: grad(lambda x: vmap(f)(x).sum()),
    "jit vmap grad": lambda f: jit(vmap(grad(f))),
    "grad jit": lambda f: grad(lambda x: jit(vmap(f))(x).sum()),
    "jvp vmap": lambda f: lambda x: jvp(vmap(f), (x,), (x,))[1],
    "vmap grad grad": lambda f: vmap(grad(grad(f))),
}


@pytest.mark.full
@pytest.mark.parametrize("name", NESTINGS)
def test_values_stay_when_caches_are_emptied(name: str) -> None:
    x = jnp.asarray(RAMP)
    nested = [NESTINGS[name](f) for f in FUNCTIONS]
    first = [np.asarray(f(x)) for f in nested]
    xlamini.clear_caches()
    for f, expected in zip(nested, first, strict=True):
        assert_close(f(x), expected, 1e-6)


@pytest.mark.slow
def test_caches_may_be_emptied_in_the_middle_of_a_trace() -> None:
    def emptied(fun: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def inner(x: Any) -> Any:
            y = jit(jnp.sin)(x) + looped(x)
            xlamini.clear_caches()
            return fun(y) + checkpoint(jnp.cos)(x)

        return inner

    for fun in FUNCTIONS:
        plain = lambda x, fun=fun: fun(jnp.sin(x) + looped(x)) + jnp.cos(x)
        for way, x in ((grad, RAMP[0]), (lambda f: jit(grad(f)), RAMP[0]), (lambda f: vmap(grad(f)), RAMP)):
            assert_close(way(emptied(fun))(x), way(plain)(x), 1e-5)


def test_jaxprs_of_a_user_are_rewritten_again() -> None:
    closed = xlamini.make_jaxpr(vmap(grad(looped)))(RAMP)
    before, expected = str(closed), program_cache.run(closed.jaxpr, [jnp.asarray(RAMP)])
    assert closed.jaxpr.memo
    xlamini.clear_caches()
    assert closed.jaxpr.memo == {} and str(closed) == before
    assert_close(program_cache.run(closed.jaxpr, [jnp.asarray(RAMP)]), expected, 1e-6)


def test_limits_are_honoured(monkeypatch: pytest.MonkeyPatch) -> None:
    xlamini.clear_caches()
    monkeypatch.setattr(kinds, "limit", 5)
    monkeypatch.setattr(derived, "limit", 2)
    monkeypatch.setattr(shared, "most", 2)
    x = jnp.asarray(RAMP)
    for power in range(2, 8):
        for _ in range(2):
            found = grad(lambda x, power=power: jnp.sum(x**power * jnp.float32(power)))(x)
        assert_close(found, power * power * RAMP ** (power - 1), 1e-5)
    assert len(kinds) <= 5 and len(shared.programs) <= 2
    assert all(len(kind.derived) <= 2 for kind in kinds.table.values())


def test_emptying_takes_no_object_from_other_threads() -> None:
    """The garbage collector's list of objects has tuples that are not made yet."""
    faults: list[BaseException] = []
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            try:
                tuple(i for i in range(50))
            except SystemError as error:
                faults.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    thread = threading.Thread(target=work)
    thread.start()
    try:
        start = time.monotonic()
        count = 0
        while time.monotonic() - start < 0.3:
            xlamini.clear_caches()
            count += 1
    finally:
        sys.setswitchinterval(before)
        over.set()
        thread.join()
    assert not faults and count > 20


def test_tables_of_owners_that_died_are_forgotten() -> None:
    class Owner:
        def __init__(self) -> None:
            self.entries: dict[str, int] = {}

    table: OwnedMemo = OwnedMemo("owners", None, "entries")
    kept = [Owner() for _ in range(10)]
    for owner in kept:
        table.keep(owner, "a", 1)
    for _ in range(5 * memo._FEW):
        table.keep(Owner(), "a", 1)
    assert len(table) == 10 and len(table.owners) == 10
    table.clear()
    assert len(table) == 0 and not any(owner.entries for owner in kept)
    table.keep(kept[0], "b", 2)
    assert len(table) == 1
