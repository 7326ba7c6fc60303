"""Threads that need one program at the same time: one compiles it, the others wait, and nobody waits for ever."""
from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import lax, numpy as jnp
from xlamini.core.caching.memo import made_once
from xlamini.staging.run.eager import program_cache

X = np.linspace(0.1, 0.9, 94, dtype=np.float32).reshape(2, 47)
"""Of a shape that no other test has, as programs of one structure are compiled once in a process."""
SECONDS = 60


def in_threads(*calls: Callable[[], Any]) -> list[Any]:
    """The results of calls that begin at once, each in a thread; what a call raises is its result."""
    start, found = threading.Barrier(len(calls)), [None] * len(calls)

    def work(i: int) -> None:
        start.wait(SECONDS)
        try:
            found[i] = calls[i]()
        except Exception as error:
            found[i] = error

    threads = [threading.Thread(target=work, args=(i,), daemon=True) for i in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert not any(thread.is_alive() for thread in threads)
    return found


def slow_tanh(x: Any) -> Any:
    time.sleep(0.02)  # so that all threads trace before one compiles
    return jnp.tanh(x).sum()


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        (lambda f: xlamini.jit(f)(X), np.tanh(X).sum()),
        (lambda f: xlamini.grad(f)(X), 1 - np.tanh(X) ** 2),
        (lambda f: xlamini.vmap(f)(X), np.tanh(X).sum(1)),
        (lambda f: lax.scan(lambda c, x: (c + f(x), c), np.float32(0), X)[0], np.tanh(X).sum()),
    ],
    ids=["jit", "grad", "vmap", "scan"],
)
def test_four_threads_compile_once(
    run: Any, expected: Any, compiled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program_cache, "_OPERATION_MS", 1e6)  # no program runs by operations, whatever is compiled

    def program(x: Any) -> Any:
        return slow_tanh(x)

    found = in_threads(*[lambda: run(program)] * 4)
    for out in found:
        np.testing.assert_allclose(out, expected, rtol=1e-5)
    (name,) = set(compiled)
    assert compiled == [name]


def test_signatures_that_share_a_program_compile_once(compiled: list[str]) -> None:
    @xlamini.jit
    def program(x: Any) -> Any:
        return slow_tanh(x)

    device = xlamini.devices()[0]
    inputs = X, xlamini.device_put(X), xlamini.device_put(X, device)
    del compiled[:]
    found = in_threads(*[lambda x=x: program(x) for x in inputs])
    assert np.allclose(found, np.tanh(X).sum()) and compiled == ["program"]


def test_where_the_first_raises_the_next_one_makes_it() -> None:
    made: dict[str, int] = {}
    attempts: list[int] = []

    def make() -> int:
        attempts.append(1)
        time.sleep(0.05)
        if len(attempts) == 1:
            raise ValueError("the first")
        made["a"] = 7
        return 7

    found = in_threads(*[lambda: made_once("a", "a", lambda: made.get("a"), make)] * 4)
    assert [str(x) for x in found if isinstance(x, ValueError)] == ["the first"]
    assert len(attempts) == 2 and found.count(7) == 3


def test_a_program_may_be_made_while_it_is_made() -> None:
    def inner() -> int:
        return made_once("a", "a", lambda: None, lambda: 7)

    assert in_threads(lambda: made_once("a", "a", lambda: None, inner)) == [7]


def test_two_that_need_each_other_do_not_wait_for_each_other() -> None:
    inside = threading.Barrier(2)

    def making(other: str) -> Callable[[], str]:
        def make() -> str:
            inside.wait(SECONDS)  # both are being made now
            return made_once(other, other, lambda: None, lambda: f"{other} in passing")

        return make

    calls = [lambda a=a, b=b: made_once(a, a, lambda: None, making(b)) for a, b in ("xy", "yx")]
    assert in_threads(*calls) == ["y in passing", "x in passing"]
