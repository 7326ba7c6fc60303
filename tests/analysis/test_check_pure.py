"""`debug.check_pure`: 32 functions with side effects, each found; and 32 that look like them, which are pure."""
from __future__ import annotations

import contextlib
import dataclasses
import datetime
import functools
import gc
import io
import itertools
import logging
import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import checkpoint, debug, grad, jit, lax, nn, numpy as jnp, random as xrandom, vmap

X = np.array([1.0, 2.0, 3.0], np.float32)
LOG: list[Any] = []
SEEN: set[int] = set()
TABLE: dict[str, Any] = {}
SETTINGS = {"rate": 0.1}
BUFFER = np.zeros(3, np.float32)
COUNTER = itertools.count()
RATE = 0.5
STEPS = 0
LAST: Any = None


def forget() -> None:
    global STEPS, LAST
    STEPS, LAST = 0, None
    for held in (LOG, SEEN, TABLE):
        held.clear()
    SETTINGS.clear()
    SETTINGS["rate"] = 0.1
    BUFFER[:] = 0


class Model:
    def __init__(self) -> None:
        self.calls, self.last, self.weights, self.history = 0, None, jnp.ones(3), [0.0]
        self.cache: dict[int, Any] = {}

    def counted(self, x: Any) -> Any:
        self.calls += 1
        return x * self.weights

    def remembered(self, x: Any) -> Any:
        self.last = x
        return x * self.weights

    def listed(self, x: Any) -> Any:
        self.history.append(1.0)
        return x

    def __call__(self, x: Any) -> Any:
        self.calls += 1
        return x

    def plain(self, x: Any) -> Any:
        return x * self.weights

    def cached(self, x: Any) -> Any:
        return x * self.cache.setdefault(3, np.arange(3))

    @functools.cached_property
    def scale(self) -> float:
        return 3.0

    def scaled(self, x: Any) -> Any:
        return x * self.scale


@dataclasses.dataclass
class Hyper:
    rate: float = 0.1
    sizes: tuple[int, ...] = (1, 2)


def global_count(x: Any) -> Any:
    global STEPS
    STEPS += 1
    return x


def global_tracer(x: Any) -> Any:
    global LAST
    LAST = x
    return x


def helper_that_appends(x: Any) -> Any:
    LOG.append(0)
    return x


def enclosed_count() -> Callable[[Any], Any]:
    count = 0

    def f(x: Any) -> Any:
        nonlocal count
        count += 1
        return x * 2

    return f


def enclosed_list() -> Callable[[Any], Any]:
    rows: list[Any] = []

    def f(x: Any) -> Any:
        rows.append(x)
        return x * 2

    return f


def in_scan(x: Any) -> Any:
    return lax.scan(lambda c, v: (helper_that_appends(c), v), 0.0, x)[0]


def writes_buffer(x: Any) -> Any:
    BUFFER[0] += 1
    return x


def asks(x: Any) -> Any:
    with contextlib.redirect_stdout(io.StringIO()):
        print("tracing")  # noqa: T201
    return x


def reads_file(x: Any) -> Any:
    with open(__file__) as file:
        return x * len(file.readline())


def changes_setting(x: Any) -> Any:
    SETTINGS["rate"] *= 0.9
    return x * 2


def clears(x: Any) -> Any:
    LOG.clear()
    LOG.extend([1, 2])
    return x


IMPURE: dict[str, tuple[Callable[[Any], Any], str]] = {
    "list": (lambda x: (LOG.append(1), x)[1], "list 'LOG'"),
    "list of tracers": (lambda x: (LOG.append(x), x)[1], "list 'LOG'"),
    "set": (lambda x: (SEEN.add(len(SEEN)), x)[1], "set 'SEEN'"),
    "dict of tracers": (lambda x: (TABLE.update(x=x), x)[1], "dict 'TABLE'"),
    "dict": (changes_setting, "dict 'SETTINGS'"),
    "extend": (clears, "list 'LOG'"),
    "buffer": (writes_buffer, "variable 'BUFFER'"),
    "global": (global_count, "variable 'STEPS'"),
    "global tracer": (global_tracer, "'LAST'"),
    "nonlocal": (enclosed_count(), "variable 'count'"),
    "enclosed list": (enclosed_list(), "list 'rows'"),
    "helper": (lambda x: helper_that_appends(x) * 2, "list 'LOG'"),
    "partial": (functools.partial(helper_that_appends), "list 'LOG'"),
    "attribute": (Model().counted, "Model 'self'"),
    "attribute tracer": (Model().remembered, "Model 'self'"),
    "list of an object": (Model().listed, "Model 'self'"),
    "callable object": (Model(), "Model 'self'"),
    "under jit": (jit(helper_that_appends), "list 'LOG'"),
    "under grad": (grad(lambda x: helper_that_appends(x).sum()), "list 'LOG'"),
    "under vmap": (vmap(helper_that_appends), "list 'LOG'"),
    "under scan": (in_scan, "list 'LOG'"),
    "under checkpoint": (checkpoint(helper_that_appends), "list 'LOG'"),
    "random": (lambda x: x * random.random(), "Random.random()"),
    "random.gauss": (lambda x: x * random.gauss(0, 1), "Random.random()"),
    "numpy.random": (lambda x: x * np.random.rand(), "numpy.random"),
    "time": (lambda x: x * time.time(), "time.time()"),
    "perf_counter": (lambda x: x + time.perf_counter(), "time.perf_counter()"),
    "datetime": (lambda x: x * datetime.datetime.now().microsecond, "datetime.now()"),
    "print": (asks, "print()"),
    "file": (reads_file, "open()"),
    "counter": (lambda x: x * next(COUNTER), "two traces differ"),
    "generator": (lambda x: x * np.random.default_rng().normal(), "two traces differ"),
}


@functools.lru_cache
def table(n: int) -> np.ndarray:
    return np.arange(n)


def local_list(x: Any) -> Any:
    rows: list[Any] = []

    def body(v: Any) -> Any:
        rows.append(v)
        return v

    return sum(map(body, [x, 2 * x])) + len(rows)


def local_count(x: Any) -> Any:
    count = 0

    def add() -> None:
        nonlocal count
        count += 1

    add()
    return x * count


def cached_by_hand(x: Any) -> Any:
    if "table" not in TABLE:
        TABLE["table"] = np.arange(3)
    return x * TABLE["table"]


def logs(x: Any) -> Any:
    logging.getLogger("tests").debug("tracing %s", x)
    return x


def formats(x: Any) -> Any:
    name = f"{x.shape} {x.dtype}"
    return x * len(name)


def prints_when_it_runs(x: Any) -> Any:
    debug.print("{}", x)
    return x


def enclosed(value: Any) -> Callable[[Any], Any]:
    return lambda x: x * value


PURE: dict[str, Callable[[Any], Any]] = {
    "arithmetic": lambda x: 2 * x + 1,
    "global number": lambda x: x * RATE,
    "global array": lambda x: x * BUFFER,
    "global dict": lambda x: x * SETTINGS["rate"],
    "closure over a number": enclosed(3.0),
    "closure over an array": enclosed(jnp.ones(3)),
    "closure over NumPy": enclosed(np.ones(3, np.float32)),
    "closure over a list": lambda x, parts=(1.0, 2.0): x * parts[0],
    "dataclass": lambda x, hyper=Hyper(): x * hyper.rate,
    "closure over a dataclass": enclosed(Hyper().rate),
    "method": Model().plain,
    "cache of an object": Model().cached,
    "cached property": Model().scaled,
    "lru_cache": lambda x: x * table(3),
    "cache by hand": cached_by_hand,
    "local list": local_list,
    "local count": local_count,
    "logger": logs,
    "format": formats,
    "debug.print": prints_when_it_runs,
    "random": lambda x: x * xrandom.normal(xrandom.key(0)),
    "seeded generator": lambda x: x * np.random.default_rng(0).normal(),
    "partial": functools.partial(jnp.multiply, 2.0),
    "jit": jit(lambda x: x * 2),
    "grad": grad(lambda x: (x * x).sum()),
    "vmap": vmap(jnp.sin),
    "scan": lambda x: lax.scan(lambda c, v: (c + v, c), 0.0, x),
    "sorted": lambda x: x * sorted([3, 1, 2])[0],
    "comprehension": lambda x: sum([x * i for i in range(3)]),
    "relu": nn.relu,
    "iterator": lambda x: x * next(iter([1.0, 2.0])),
    "update": lambda x: x.at[0].set(1.0),
}


@pytest.fixture(autouse=True)
def _forget() -> Any:
    forget()
    yield
    forget()


@pytest.mark.parametrize("name", IMPURE)
def test_impure(name: str) -> None:
    f, what = IMPURE[name]
    found = debug.check_pure(f)(X)
    assert not found
    assert what in repr(found)
    assert all(impurity.file == __file__ and impurity.line for impurity in found.found)


@pytest.mark.parametrize("name", PURE)
def test_pure(name: str) -> None:
    found = debug.check_pure(PURE[name])(X)
    assert bool(found), repr(found)


def test_lines_and_words() -> None:
    found = debug.check_pure(helper_that_appends)(X)
    (write,) = found.found
    assert write.line == helper_that_appends.__code__.co_firstlineno + 1
    assert repr(found).endswith("not when its program runs: take the value as an argument, and return it.")
    drawn = debug.check_pure(lambda x: x * random.random())(X)
    assert "--- first trace\n+++ second trace" in drawn.difference
    assert drawn.as_dict()["found"][0]["kind"] == "random numbers"


def test_what_the_garbage_collector_calls_is_not_the_functions() -> None:
    def told(phase: str, info: dict[str, int]) -> None:
        time.perf_counter()

    thresholds = gc.get_threshold()
    gc.callbacks.append(told)
    gc.set_threshold(1)
    try:
        assert debug.check_pure(lambda x: x * len([[i] for i in range(100)]))(X)
    finally:
        gc.set_threshold(*thresholds)
        gc.callbacks.remove(told)


def test_nothing_runs_and_errors_are_those_of_tracing() -> None:
    debug.check_pure(lambda x: xlamini.debug.callback(LOG.append, x))(X)
    assert not LOG
    with pytest.raises(TypeError, match="Incompatible shapes"):
        debug.check_pure(lambda x: x + jnp.ones(2))(X)
