"""cond and switch: values, derivatives and batches in all combinations, beside plain Python."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.support.checks import assert_close
from tests.support.choices import PROGRAMS, plain, random_program, staged, straight
from xlamini import grad, jacfwd, jacrev, jit, lax, numpy as jnp, vmap

TOLERANCE, FINITE, STEP = 1e-10, 1e-7, 1e-5
POINTS = [(0.7, (0.4, -0.3, 0.9)), (-0.6, (0.8, 0.5, -0.2)), (1.3, (-1.1, 1.4, 0.6))]
VECTORS = np.array([v for _, v in POINTS])
SCALARS = np.array([s for s, _ in POINTS])


@pytest.fixture(autouse=True)
def doubles() -> Iterator[None]:
    with xlamini.enable_x64(True):
        yield


def finite_difference(program: Any, s: float, v: Any) -> np.ndarray:
    v = np.asarray(v, np.float64)
    steps = np.eye(3) * STEP
    return np.array([(plain(program, s, v + d) - plain(program, s, v - d)) / (2 * STEP) for d in steps])


# --- values and derivatives


@pytest.mark.sample(64)
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("s, v", POINTS)
def test_values_and_gradients_are_those_of_plain_python(program: Any, s: float, v: Any) -> None:
    f, v = staged(program), np.array(v)
    assert_close(f(s, v), plain(program, s, v), TOLERANCE)
    assert_close(jit(f)(s, v), plain(program, s, v), TOLERANCE)
    expected = grad(straight(program, s, v), (0, 1))(s, v)
    assert_close(expected[1], finite_difference(program, s, v), FINITE)
    for transformed in (grad(f, (0, 1)), jit(grad(f, (0, 1))), grad(jit(f), (0, 1)), jacfwd(f, (0, 1))):
        for found, wanted in zip(transformed(s, v), expected, strict=True):
            assert_close(found, wanted, TOLERANCE)


@pytest.mark.full
@pytest.mark.parametrize("program", PROGRAMS)
def test_second_and_third_derivatives(program: Any) -> None:
    s, v = POINTS[0]
    f, reference = staged(program), straight(program, s, v)
    for first, second in ((jacfwd, jacrev), (jacrev, jacfwd), (jacrev, jacrev), (jacfwd, jacfwd)):
        found = jit(first(second(f, 1), 1))(s, np.array(v))
        assert_close(found, jit(first(second(reference, 1), 1))(s, np.array(v)), TOLERANCE)
    third = jit(jacfwd(jacrev(jacrev(f, 1), 1), 1))(s, np.array(v))
    assert_close(third, jit(jacfwd(jacrev(jacrev(reference, 1), 1), 1))(s, np.array(v)), TOLERANCE)


@pytest.mark.sample(32)
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0), (None, 1)])
def test_batches_are_loops(program: Any, axes: Any) -> None:
    s = SCALARS if axes[0] == 0 else SCALARS[0]
    v = VECTORS if axes[1] is not None else VECTORS[0]
    given = v.T if axes[1] == 1 else v
    pairs = [(s if axes[0] is None else s[i], v if axes[1] is None else v[i]) for i in range(3)]
    f = staged(program)
    assert_close(vmap(f, axes)(s, given), [plain(program, *pair) for pair in pairs], TOLERANCE)
    expected = [grad(straight(program, *pair), 1)(*pair) for pair in pairs]
    of_each = jit(vmap(grad(f, 1), axes))(s, given)
    assert_close(of_each, expected, TOLERANCE)
    of_sum = grad(lambda v: vmap(f, axes)(s, v).sum())(given)
    assert_close(of_sum, np.sum(expected, 0) if axes[1] is None else np.moveaxis(np.array(expected), 0, axes[1]), 1e-9)


@pytest.mark.full
@pytest.mark.parametrize("program", PROGRAMS[:4])
def test_two_batches_and_a_batched_hessian(program: Any) -> None:
    f = staged(program)
    table = vmap(vmap(f, (None, 0)), (0, None))(SCALARS, VECTORS)
    assert_close(table, [[plain(program, s, v) for v in VECTORS] for s in SCALARS], TOLERANCE)
    hessians = jit(vmap(jacfwd(jacrev(f, 1), 1)))(SCALARS, VECTORS)
    pairs = zip(SCALARS, VECTORS, strict=True)
    assert_close(hessians, [jacfwd(jacrev(straight(program, s, v), 1), 1)(s, v) for s, v in pairs], 1e-9)


@pytest.mark.full
@pytest.mark.parametrize("seed", range(10))
def test_random_programs(seed: int) -> None:
    program = random_program(seed)
    f = staged(program)
    expected = [grad(straight(program, s, v), 1)(s, v) for s, v in zip(SCALARS, VECTORS, strict=True)]
    found = [jit(grad(f, 1))(s, v) for s, v in zip(SCALARS, VECTORS, strict=True)]
    assert_close(found, expected, TOLERANCE)
    assert_close(jit(vmap(grad(f, 1)))(SCALARS, VECTORS), expected, TOLERANCE)
    assert_close(jit(vmap(jacfwd(f, 1)))(SCALARS, VECTORS), expected, TOLERANCE)
    values = [plain(program, s, v) for s, v in zip(SCALARS, VECTORS, strict=True)]
    assert_close(vmap(jit(f))(SCALARS, VECTORS), values, TOLERANCE)


@pytest.mark.full
def test_a_derivative_that_does_not_exist_elsewhere_does_not_spoil_the_sum() -> None:
    def f(x: Any) -> Any:
        return lax.cond(x > 0, lambda x: jnp.log(x) + jnp.sqrt(x), lambda x: 2.0 * x, x)

    assert_close(vmap(grad(f))(np.array([0.0, 4.0, -1.0])), [2.0, 0.5, 2.0], TOLERANCE)
    assert_close(grad(lambda x: vmap(f)(x).sum())(np.array([0.0, 4.0, -1.0])), [2.0, 0.5, 2.0], TOLERANCE)
    held = vmap(lambda p, w: lax.cond(p, lambda: jnp.log(w), lambda: 0.0), (0, None))
    assert_close(grad(lambda w: held(np.array([False, False]), w).sum())(0.0), 0.0, TOLERANCE)


@pytest.mark.full
def test_captured_tracers_of_every_transformation_around() -> None:
    def f(x: Any) -> Any:
        def inner(y: Any) -> Any:
            return lax.cond(y > x, lambda: x * y * y, lambda: jnp.sin(x) * y)

        return grad(inner)(x * 0.5) + vmap(inner)(jnp.stack([x, 2 * x])).sum() + jit(inner)(x)

    def by_hand(x: float) -> float:
        def inner(y: float) -> float:
            return x * y * y if y > x else np.sin(x) * y

        slope = x * x if x * 0.5 > x else np.sin(x)
        return slope + inner(x) + inner(2 * x) + inner(x)

    for x in (0.7, -0.4):
        assert_close(f(x), by_hand(x), TOLERANCE)
        difference = (by_hand(x + STEP) - by_hand(x - STEP)) / (2 * STEP)
        for found in (grad(f)(x), jit(grad(f))(x), jacfwd(f)(x), vmap(grad(f))(np.array([x]))[0]):
            assert_close(found, difference, FINITE)


def test_a_choice_in_a_loop_in_a_choice() -> None:
    def loop(x: Any) -> Any:
        def body(carry: Any) -> Any:
            i, y = carry
            return i + 1, lax.cond(i % 2 == 0, lambda y: y * x, jnp.sin, y)

        return lax.while_loop(lambda carry: carry[0] < 5, body, (0, x))[1]

    def by_hand(x: float) -> float:
        y = x
        for i in range(5):
            y = y * x if i % 2 == 0 else np.sin(y)
        return y

    def f(p: Any, x: Any) -> Any:
        return lax.cond(p, lambda: loop(x), lambda: 3.0 * x)

    points = np.array([1.3, 0.4])
    difference = (by_hand(1.3 + STEP) - by_hand(1.3 - STEP)) / (2 * STEP)
    assert_close(vmap(f)(np.array([True, False]), points), [by_hand(1.3), 1.2], TOLERANCE)
    assert_close(jit(vmap(jacfwd(f, 1)))(np.array([True, False]), points), [difference, 3.0], FINITE)


@pytest.mark.full
def test_reverse_mode_through_a_choice_in_a_scan_in_a_choice() -> None:
    def loop(x: Any) -> Any:
        def body(y: Any, i: Any) -> Any:
            return lax.switch(i % 3, [lambda y: y * x, jnp.sin, lambda y: y + x * y], y), y

        return lax.scan(body, x, np.arange(5))[0]

    def by_hand(x: Any) -> Any:
        y = x
        for i in range(5):
            y = (y * x, jnp.sin(y), y + x * y)[i % 3]
        return y

    def f(p: Any, x: Any) -> Any:
        return lax.cond(p, lambda: loop(x), lambda: 3.0 * x)

    points = np.array([1.3, 0.4])
    first, second, third = grad(by_hand), grad(grad(by_hand)), grad(grad(grad(by_hand)))
    assert_close(jit(vmap(grad(f, 1)))(np.array([True, False]), points), [first(1.3), 3.0], TOLERANCE)
    assert_close(vmap(grad(grad(loop)))(points), [second(1.3), second(0.4)], TOLERANCE)
    assert_close(jit(grad(jacfwd(grad(loop))))(1.3), third(1.3), TOLERANCE)


def test_linear_maps_are_transposed() -> None:
    def f(x: Any) -> Any:
        return lax.switch(1, [lambda x: x, lambda x: 3.0 * x, lambda x: jnp.zeros(3)], x)

    assert_close(xlamini.linear_transpose(f, jnp.ones(3))(jnp.arange(3.0))[0], [0.0, 3.0, 6.0], TOLERANCE)
    out, pull = xlamini.vjp(lambda x, n: lax.cond(n > 1, lambda: x * n, lambda: x), 2.0, 3)
    assert out == 6.0
    assert pull(1.0)[0] == 3.0
    assert pull(1.0)[1].dtype == xlamini.float0


def test_a_mapped_predicate_makes_a_branch_of_each_function() -> None:
    jaxpr = xlamini.make_jaxpr(xlamini.vmap(lambda p, x: lax.cond(p, lax.sin, lax.square, x)))
    names = [eqn.primitive.name for eqn in jaxpr(np.array([True, False]), np.ones(2, np.float32)).eqns]
    assert names.count("branch") == 2 and names[-1] == "select_n"


@pytest.mark.parametrize("number", [3, 2.5, True, np.float32(2), np.ones(2)])
def test_an_operand_that_all_branches_return_is_an_array(number: Any) -> None:
    out, other = lax.cond(True, lambda x: (x, x * 2), lambda x: (x, x * 3), number)
    assert isinstance(out, xlamini.Array)
    assert (out.dtype, other.dtype) == (jnp.asarray(number).dtype, (jnp.asarray(number) * 2).dtype)
    np.testing.assert_array_equal(out, number)
    assert isinstance(lax.switch(1, [lambda x: x, lambda x: x], number), xlamini.Array)
