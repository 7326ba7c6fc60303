"""scan beside a loop in Python: values, and batching of every operand."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.support.checks import assert_close
from tests.support.loops import (
    CASES,
    EXACT,
    ROWS,
    W,
    all_close,
    both,
    by_python,
    floats_of,
    loop,
    python_gradient,
    python_loss,
    python_values,
    recurrent,
    some,
)
from xlamini import grad, jit, lax, random, vmap


@pytest.fixture(autouse=True)
def in_double() -> Iterator[None]:
    with xlamini.enable_x64(True):
        yield


OPTIONS: list[dict[str, Any]] = [
    {"reverse": True},
    {"unroll": 2},
    {"unroll": 3, "reverse": True},
    {"unroll": True},
    {"unroll": 0},
]


# --- values


@pytest.mark.parametrize("name", CASES)
def test_equals_the_loop_in_python(name: str) -> None:
    case = CASES[name]
    found = loop(case)(W, case.init, case.xs)
    all_close(found, python_values(name, False))
    all_close(jit(loop(case))(W, case.init, case.xs), found, 0)


@pytest.mark.sample(15)
@pytest.mark.parametrize("name, options", some(OPTIONS, 2), ids=str)
def test_order_and_unrolling(name: str, options: dict[str, Any]) -> None:
    case = CASES[name]
    all_close(jit(loop(case, **options))(W, case.init, case.xs), python_values(name, bool(options.get("reverse"))))


@pytest.mark.parametrize("name, reverse", some([False, True], 1))
def test_without_jit_it_is_a_loop_in_python(name: str, reverse: bool) -> None:
    case = CASES[name]
    seen = []

    def body(carry: Any, x: Any) -> Any:
        seen.append(np.asarray(xlamini.tree.leaves(x)[0]))
        return case.body(W, carry, x)

    with xlamini.disable_jit():
        all_close(lax.scan(body, case.init, case.xs, reverse=reverse), python_values(name, reverse))
    assert len(seen) == len(ROWS)


@pytest.mark.parametrize(
    "length, options", [(0, {}), (0, {"unroll": 0}), (1, {}), (1, {"reverse": True}), (2, {"unroll": 3})], ids=str
)
def test_short_loops(length: int, options: dict[str, Any]) -> None:
    xs = ROWS[:length]
    run = loop(CASES["recurrent"], **options)
    carry, ys = run(W, W, xs)
    assert ys.shape == (length, 3)
    if length:
        all_close((carry, ys), by_python(lambda c, x: recurrent(W, c, x), W, xs, reverse=bool(options.get("reverse"))))
    else:
        assert_close(carry, W, 0)
    slopes = grad(lambda w, h, xs: run(w, h, xs)[0].sum(), (0, 1, 2))(W, W, xs)
    assert [s.shape for s in slopes] == [(3,), (3,), (length, 3)]
    all_close(vmap(run, (None, 0, None))(W, ROWS, xs)[0][2], run(W, ROWS[2], xs)[0])
    with xlamini.disable_jit():
        all_close(run(W, W, xs), (carry, ys))


def test_no_slices_but_a_length() -> None:
    carry, ys = lax.scan(lambda c, x: (c * 2, (c, x)), 1, None, length=4)
    assert int(carry) == 16 and ys[1] is None
    assert_close(ys[0], [1, 2, 4, 8], 0)
    length: Any = np.int64(3)
    assert lax.scan(lambda c, x: (c, None), (), {}, length=length) == ((), None)
    assert lax.scan(lambda c, x: (c, x), 1.5, np.zeros((3, 0)), length=3)[1].shape == (3, 0)


def test_numbers_take_on_the_types_that_the_body_returns() -> None:
    x = np.ones(3, np.float32)
    strong, _ = lax.scan(lambda c, x: (c + x, None), 0, x)
    assert (strong.dtype, strong.weak_type, float(strong)) == (np.float32, False, 3.0)
    weak, ys = lax.scan(lambda c, x: (c + 1, 2.0), 0, x)
    assert (weak.weak_type, weak.dtype, ys.weak_type, ys.dtype) == (True, np.int64, True, np.float64)
    (a, b), _ = lax.scan(lambda c, x: ((c[0] + 1, c[1] * x), None), (0, 1.0), x)
    assert (a.dtype, b.dtype) == (np.int64, np.float32)


def types_of(tree: Any) -> Any:
    """The dtype of each array, with a ~ if it is weak."""
    return xlamini.tree.map(lambda x: "~" * x.weak_type + x.dtype.name, tree)


WEAK: list[Any] = [
    (lambda c, x: ((c[1], c[0] * x), c[1]), (1.0, 1.0), 1, ("~float32", "float32"), "~float32", 1.1),
    (lambda c, x: (c * x, c), 1.0, 1, "float32", "~float32", 0.231),
    (lambda c, x: (c * x, c), 1, 2, "float32", "float32", 0.231),
    (lambda c, x: (2.0, c), np.float32(1), 1, "~float32", "float32", 2.0),
    (lambda c, x: ((c * x.astype("bfloat16")).astype("float32"), c), 1.1, 1, "float32", "~float32", 0.25456238),
    (lambda c, x: ((c[1], c[0] * x, c[0]), ()), (1.0, 1.0, 3), 2, ("~float32", "float32", "~float32"), (), 1.1),
]
"""A body, the start, how often it is traced, the types of carry and outputs, a number of the carry: JAX 0.10.2's."""


@pytest.mark.parametrize("body, init, count, carry, out, number", WEAK)
def test_weak_types(body: Any, init: Any, count: int, carry: Any, out: Any, number: float) -> None:
    traced = []

    def counted(c: Any, x: Any) -> Any:
        traced.append(c)
        return body(c, x)

    with xlamini.enable_x64(False):
        last, ys = lax.scan(counted, init, np.arange(3, dtype=np.float32) + np.float32(0.1))
    assert (len(traced), types_of(last), types_of(ys)) == (count, carry, out)
    np.testing.assert_allclose(xlamini.tree.leaves(last)[0], number, rtol=1e-6)


def test_weak_types_of_other_loops() -> None:
    with xlamini.enable_x64(False):
        assert types_of(lax.while_loop(lambda c: c < 2, lambda c: np.float32(2), 1.0)) == "float32"
        assert types_of(lax.while_loop(lambda c: c < 2, lambda c: 2.0, np.float32(1))) == "~float32"
        assert types_of(lax.fori_loop(0, 2, lambda i, c: c * np.float32(2), 1.0)) == "float32"


def test_what_is_passed_on_is_not_computed() -> None:
    (fixed, h), (same, ys) = lax.scan(lambda c, x: ((c[0], c[1] + x), (x, c[0])), (W, 0.0), np.arange(3.0))
    assert all(isinstance(x, xlamini.Array) for x in (fixed, h, same, ys))
    assert_close(same, np.arange(3.0), 0)
    assert_close(fixed, W, 0)
    program = xlamini.make_jaxpr(lambda w, xs: lax.scan(lambda c, x: (c, (x, c * x)), w, xs))(W, ROWS)
    (eqn,) = program.eqns
    assert (eqn.params["num_carry"], eqn.params["num_consts"], len(eqn.outvars)) == (0, 1, 1)


@pytest.mark.full
def test_keys_as_carry_and_slices() -> None:
    def body(key: Any, x: Any) -> Any:
        key, sub = random.split(key)
        return key, (random.normal(sub) + random.normal(x), sub)

    keys = random.split(random.key(1), 4)
    for options in OPTIONS:
        last, (numbers, subs) = lax.scan(body, random.key(0), keys, **options)
        order = range(3, -1, -1) if options.get("reverse") else range(4)
        key, expected = random.key(0), {}
        for i in order:
            key, (expected[i], _) = body(key, keys[i])
        assert_close(numbers, [expected[i] for i in range(4)], EXACT)
        assert_close(random.key_data(last), random.key_data(key), 0)
        assert subs.shape == (4,)
    assert vmap(lambda k: lax.scan(body, k, keys)[1][0])(random.split(random.key(5), 2)).shape == (2, 4)
    slope = grad(lambda s: lax.scan(lambda c, k: (c * s + random.normal(k), None), 0.0, keys)[0])(2.0)
    noise = [float(random.normal(k)) for k in keys]
    assert_close(slope, sum((3 - i) * 2.0 ** (2 - i) * noise[i] for i in range(3)), EXACT)


# --- vmap


@pytest.mark.sample(15)
@pytest.mark.parametrize("name, seed", some(range(7), 2))
def test_vmap_over_subsets_of_operands(name: str, seed: int) -> None:
    of_scan, _ = both(CASES[name])
    args = floats_of(CASES[name])
    subset = [bool((seed + 1) >> (i % 3) & 1) for i in range(len(args))]
    axes = tuple(x.ndim if marked else None for x, marked in zip(args, subset, strict=True))
    operands = [np.stack([x, -x], x.ndim) if marked else x for x, marked in zip(args, subset, strict=True)]
    rows = [args, [-x if marked else x for x, marked in zip(args, subset, strict=True)]]
    found = jit(vmap(of_scan, axes))(*operands)
    assert_close(found, np.stack([python_loss(name)(*row) for row in rows]), EXACT)


@pytest.mark.full
@pytest.mark.parametrize("name", CASES)
def test_vmap_and_grad_in_both_orders(name: str) -> None:
    of_scan, _ = both(CASES[name], unroll=2)
    args = floats_of(CASES[name])
    places = tuple(range(len(args)))
    axes = (0, *(None,) * (len(args) - 1))
    ws = np.stack([W, -W])
    rows = [python_gradient(name)(w, *args[1:]) for w in ws]
    expected = xlamini.tree.map(lambda *xs: np.stack(xs), *rows)
    all_close(jit(vmap(grad(of_scan, places), axes))(ws, *args[1:]), expected)
    of_mapped = jit(grad(lambda *xs: vmap(of_scan, axes)(*xs).sum(), places))(ws, *args[1:])
    all_close(of_mapped, (expected[0], *(x.sum(0) for x in expected[1:])))


@pytest.mark.full
def test_one_mapped_value_spreads_through_the_carries() -> None:
    run = lambda a, b, c, x: lax.scan(lambda s, x: ((s[1], s[2], s[0] + x), s[0]), (a, b, c), x)
    mapped = vmap(run, (None, None, 0, None))(1.0, 2.0, np.arange(4.0), np.ones(5))
    all_close(xlamini.tree.map(lambda x: x[3], mapped), run(1.0, 2.0, 3.0, np.ones(5)))
    twice = vmap(vmap(run, (None, 0, None, None)), (0, None, None, 1))(np.arange(2.0), np.arange(3.0), 1.0, ROWS[:, :2])
    all_close(xlamini.tree.map(lambda x: x[1, 2], twice), run(1.0, 2.0, 1.0, ROWS[:, 1]))
