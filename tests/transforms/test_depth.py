"""Deep nests of transformed functions are traced, rewritten, compiled and run; endless ones raise an error."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from typing import Any

import pytest

import xlamini
from xlamini import lax

pytestmark = pytest.mark.sample(3)

WRAPS: dict[str, Callable[[Any], Any]] = {
    "jit": lambda f: xlamini.jit(lambda x: f(x) + 1),
    "checkpoint": lambda f: xlamini.checkpoint(lambda x: f(x) + 1),
    "scan": lambda f: lambda x: lax.scan(lambda c, _: (f(c) + 1, None), x, None, length=1)[0],
    "while_loop": lambda f: lambda x: lax.fori_loop(0, 1, lambda _, c: f(c) + 1, x),
}


def nest(wrap: Callable[[Any], Any], depth: int) -> Any:
    f: Any = lambda x: x * 1.5
    for _ in range(depth):
        f = wrap(f)
    return f


@pytest.mark.slow
@pytest.mark.parametrize(("wrap", "depth"), [("jit", 500), ("checkpoint", 500), ("scan", 250), ("while_loop", 250)])
def test_deep_nests_run(wrap: str, depth: int) -> None:
    assert xlamini.jit(nest(WRAPS[wrap], depth))(2.0) == depth + 3


@pytest.mark.slow
@pytest.mark.parametrize("wrap", ["jit", "checkpoint", "scan"])
def test_derivatives_and_batches_of_150_levels(wrap: str) -> None:
    f = nest(WRAPS[wrap], 150)
    assert xlamini.jit(xlamini.grad(f))(2.0) == 1.5
    assert xlamini.vmap(f)(xlamini.numpy.arange(2.0)).tolist() == [150, 151.5]


def test_conds_are_lowered() -> None:
    f = nest(lambda f: lambda x: lax.cond(x > 0, f, lambda x: x, x), 150)
    assert xlamini.jit(f).lower(1.0).as_text().count("stablehlo.case") == 150


@pytest.mark.slow
@pytest.mark.parametrize(
    "wrap",
    [
        lambda f: lambda x: lax.cond(x > 0, f, lambda x: x, x),
        lambda f: lambda x: lax.while_loop(lambda x: x > 9, f, x),
        lambda f: lambda x: lax.scan(lambda c, _: (f(c), None), x, None, length=2)[0],
    ],
    ids=["cond", "while_loop", "scan"],
)
def test_nests_on_which_xla_would_crash_are_refused(wrap: Any) -> None:
    with pytest.raises(RecursionError, match=r"are nested 180 deep, and XLA's compiler takes 160: .*lax.while_loop"):
        xlamini.jit(nest(wrap, 180))(2.0)


@pytest.mark.slow
def test_a_nest_as_deep_as_xla_takes_runs(no_cache: None) -> None:  # XLA writes it to disk, but cannot read it
    f = nest(lambda f: lambda x: lax.cond(x > 0, f, lambda x: x, x), 160)
    assert xlamini.jit(f)(2.0) == 3


@pytest.mark.slow
def test_in_another_thread() -> None:
    found = []
    thread = threading.Thread(target=lambda: found.append(xlamini.jit(nest(WRAPS["jit"], 400))(2.0)))
    thread.start()
    thread.join()
    assert found == [403]


def test_a_nest_leaves_pythons_limit_as_high_as_it_needs() -> None:
    before = sys.getrecursionlimit()
    assert xlamini.eval_shape(nest(WRAPS["jit"], 4), 1.0).shape == ()
    assert sys.getrecursionlimit() == before


@pytest.mark.slow
def test_functions_that_call_themselves() -> None:
    forever = xlamini.jit(lambda x: forever(x))

    def descend(x: Any) -> Any:
        return lax.cond(x > 0, descend, lambda x: x, x)

    slope = xlamini.jit(lambda x: xlamini.grad(slope)(x))
    for f, name in ((forever, "<lambda>"), (descend, "descend"), (slope, "<lambda>")):
        with pytest.raises(RecursionError, match=f"^(cond: )?{name} is traced inside 551 others: .*lax.while_loop"):
            f(1.0)
