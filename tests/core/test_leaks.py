"""Leaked tracers under flag `check_tracer_leaks`: an error when the trace ends, with the line and the holder."""

from __future__ import annotations

import functools
import gc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import lax, numpy as jnp
from xlamini.errors import UnexpectedTracerError

X = np.ones(3, np.float32)
KEPT: list[Any] = []


@pytest.fixture(autouse=True)
def unfrozen() -> Iterator[None]:
    """The collector tells nothing about objects that are frozen, as all are that pytest collected tests with."""
    gc.unfreeze()
    yield
    gc.freeze()


class Holder:
    """An object of the user's."""

    value: Any = None


def keep(x: Any) -> Any:
    y = x * 2
    KEPT.append(y)
    return y + 1


@pytest.fixture(autouse=True)
def cleared():
    yield
    KEPT.clear()


@pytest.mark.full
@pytest.mark.parametrize(
    "run",
    [
        lambda: xlamini.jit(keep)(X),
        lambda: xlamini.make_jaxpr(keep)(X),
        lambda: xlamini.grad(keep)(1.0),
        lambda: xlamini.vmap(keep)(X),
        lambda: lax.scan(lambda c, a: (keep(c), a), np.float32(1), X),
        lambda: lax.cond(True, keep, lambda x: x, X),
    ],
    ids=["jit", "make_jaxpr", "grad", "vmap", "scan", "cond"],
)
def test_a_tracer_in_a_list_is_found(run):
    where = rf"made at {__file__}:\d+ \(keep\), is in a list in the entry 'KEPT' in module {__name__}"
    with xlamini.check_tracer_leaks(), pytest.raises(UnexpectedTracerError, match=where):
        run()


@pytest.mark.full
def test_the_error_names_argument_and_attribute():
    holder = Holder()

    def f(x):
        holder.value = x
        return x

    message = (
        r"Leaked tracers: 1 of f are referenced after its trace has ended:\n  JitTracer\(float32\[3\]\), made as its "
        r"argument 'x', is in the attribute 'value' of a Holder in the variable 'holder' of "
        r"test_the_error_names_argument_and_attribute\nA traced value must not be kept"
    )
    with xlamini.checking_leaks(), pytest.raises(UnexpectedTracerError, match=message):
        xlamini.jit(f)(X)


@pytest.mark.full
def test_a_tracer_in_a_closure_is_found():
    thunks = []

    def delayed(x):
        y = x + 1
        thunks.append(lambda: y)
        return x

    with xlamini.checking_leaks(), pytest.raises(UnexpectedTracerError, match="is in a variable of a closure"):
        xlamini.jit(delayed)(X)


@pytest.mark.full
def test_a_function_that_was_traced_before_is_checked():
    f = xlamini.jit(keep)
    f(X)
    f(X)
    with xlamini.checking_leaks(), pytest.raises(UnexpectedTracerError, match="Leaked tracers"):
        f(X)
    assert f(X).tolist() == [3, 3, 3]


@pytest.mark.full
def test_a_rule_may_close_over_a_tracer():
    @functools.partial(xlamini.custom_vjp, nondiff_argnums=(1,))
    def applied(x, f):
        return f(x)

    applied.defvjp(lambda x, f: (f(x), x), lambda f, x, ct: (ct * f(x),))
    with xlamini.checking_leaks():
        out = xlamini.jit(lambda n, x: xlamini.grad(lambda x: applied(x, lambda y: y * n))(x))(4.0, 3.0)
    assert float(out) == 12


@xlamini.custom_vjp
def doubled(x):
    return x * 2


doubled.defvjp(lambda x: (x * 2, x), lambda residual, g: (2 * g + 0 * residual,))


@pytest.mark.slow
def test_programs_without_leaks_pass():
    inner = xlamini.jit(lambda x: x * 3)

    def f(x):
        total, _ = lax.scan(lambda c, a: (c + inner(a), c), 0.0, x)
        total = lax.fori_loop(0, 3, lambda i, c: c * x[0], total)
        remade = xlamini.checkpoint(lambda y: jnp.sin(y) * x)(x)
        return jnp.sum(doubled(remade)) + lax.cond(total > 0, jnp.sin, jnp.cos, total)

    expected = xlamini.jit(xlamini.grad(f))(X)
    with xlamini.checking_leaks():
        np.testing.assert_allclose(xlamini.vmap(xlamini.grad(f))(X[None])[0], expected, rtol=1e-6)


def test_a_trace_without_leaks_never_walks_over_the_heap(monkeypatch):
    def walks(*objects):
        raise AssertionError("a walk over the heap")

    heap = [[] for _ in range(1000)]
    for name in ("get_objects", "get_referrers", "collect"):
        monkeypatch.setattr(gc, name, walks)
    inner = xlamini.jit(lambda x: x * 3)
    with xlamini.checking_leaks():
        out = xlamini.grad(lambda x: lax.fori_loop(0, 3, lambda i, c: inner(c) + x, x))(2.0)
    assert float(out) == 40 and len(heap) == 1000


@pytest.mark.full
def test_leaks_are_looked_for_all_at_once(monkeypatch):
    walks = []

    def referrers(*objects):
        walks.append(len(objects))
        return real(*objects)

    def f(x):
        KEPT.extend([x + i for i in range(80)])
        return x

    real = gc.get_referrers
    monkeypatch.setattr(gc, "get_referrers", referrers)
    with xlamini.checking_leaks(), pytest.raises(UnexpectedTracerError, match="Leaked tracers: 50 of f are referenced"):
        xlamini.jit(f)(X)
    assert walks[0] == 50 and len(walks) <= 2 * 7


@pytest.mark.full
def test_leaks_out_of_nested_traces_are_found():
    kept = {}

    def body(c, x):
        kept["both"] = [c, x * 2]
        return c, x

    def f(x):
        return lax.scan(body, 0.0, x)[1]

    message = "Leaked tracers: 2 of body .*\n.*is in a list in the entry 'both' in the variable 'kept'"
    with xlamini.checking_leaks(), pytest.raises(UnexpectedTracerError, match=message):
        xlamini.jit(f)(X)
