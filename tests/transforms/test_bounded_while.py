"""while_loop with max_steps: reverse mode beside finite differences and unrolled loops, and how much it keeps."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.transforms.test_while_loop import EXACT, FINITE, POINT, close, residual_bytes, slope
from xlamini import grad, jacfwd, jacrev, jit, jvp, lax, numpy as jnp, vmap


@pytest.fixture(autouse=True)
def in_double() -> Iterator[None]:
    with xlamini.enable_x64(True):
        yield


def growth(x: Any, n: Any, limit: int = 12) -> Any:
    """n turns of something nonlinear in x, at most `limit`; an integer, a vector and a sum are carried."""

    def body(c: Any) -> Any:
        y = jnp.sin(c["y"]) * x + 0.1 * c["y"][::-1]
        return {"i": c["i"] + 1, "y": y, "sum": c["sum"] + (y * y).sum()}

    init = {"i": 0, "y": x * x, "sum": 0.0}
    return lax.while_loop(lambda c: c["i"] < n, body, init, max_steps=limit)["sum"]


def growth_in_numpy(x: Any, n: int, limit: int = 12) -> Any:
    y, total = x * x, 0.0
    for _ in range(min(n, limit)):
        y = np.sin(y) * x + 0.1 * y[::-1]
        total += (y * y).sum()
    return total


def unrolled(x: Any, n: int) -> Any:
    y, total = x * x, 0.0
    for _ in range(n):
        y = jnp.sin(y) * x + 0.1 * y[::-1]
        total = total + (y * y).sum()
    return total


def numeric_gradient(f: Callable[[Any], Any], x: Any) -> Any:
    return np.stack([slope(lambda t, e=e: f(x + t * e), 0.0) for e in np.eye(len(x))])


@pytest.mark.full
@pytest.mark.parametrize(("n", "limit"), [(0, 3), (1, 1), (3, 12), (12, 12), (20, 7), (5, 0), (4, 100)])
def test_gradient_beside_finite_differences(n: int, limit: int) -> None:
    expected = numeric_gradient(lambda x: growth_in_numpy(x, n, limit), POINT)
    f = lambda x: growth(x, n, limit)
    value, found = xlamini.value_and_grad(f)(jnp.asarray(POINT))
    close(value, growth_in_numpy(POINT, n, limit))
    close(found, expected, FINITE)
    close(jit(grad(f))(jnp.asarray(POINT)), found)
    close(grad(jit(f))(jnp.asarray(POINT)), found)
    close(jacfwd(f)(jnp.asarray(POINT)), found)


@pytest.mark.slow
def test_second_and_third_order() -> None:
    x = jnp.asarray(POINT)
    f, plain = lambda x: growth(x, 3, 4), lambda x: unrolled(x, 3)
    expected = jacfwd(jacfwd(plain))(x)
    for outer in (jacfwd, jacrev):
        for inner in (jacfwd, jacrev):
            close(jit(outer(inner(f)))(x), expected)
    along = lambda f: lambda t: f(POINT * t)
    close(jit(grad(grad(grad(along(f)))))(0.9), jit(grad(grad(grad(along(plain)))))(0.9))
    close(jit(jacfwd(grad(grad(along(f)))))(0.9), jit(grad(grad(grad(along(plain)))))(0.9))


@pytest.mark.slow
def test_batches_of_gradients_and_gradients_of_batches() -> None:
    xs, ns = jnp.asarray([POINT, 2 * POINT, -POINT]), jnp.asarray([0, 3, 20])
    pairs = zip(np.asarray(xs), (0, 3, 20), strict=True)
    expected = np.stack([numeric_gradient(lambda x, n=n: growth_in_numpy(x, n), x) for x, n in pairs])
    close(jit(vmap(grad(growth)))(xs, ns), expected, FINITE)
    close(jit(grad(lambda xs: vmap(growth)(xs, ns).sum()))(xs), expected, FINITE)
    same = np.stack([numeric_gradient(lambda x: growth_in_numpy(x, 3), np.asarray(x)) for x in xs])
    close(vmap(grad(growth), (0, None))(xs, 3), same, FINITE)
    close(grad(lambda xs: vmap(growth, (0, None))(xs, 3).sum())(xs), same, FINITE)
    counts = [numeric_gradient(lambda x, n=n: growth_in_numpy(x, n), POINT) for n in (0, 3, 20)]
    close(vmap(grad(growth), (None, 0))(jnp.asarray(POINT), ns), np.stack(counts), FINITE)
    close(grad(lambda x: vmap(growth, (None, 0))(x, ns).sum())(jnp.asarray(POINT)), sum(counts), FINITE)
    hessians = jit(vmap(jacfwd(grad(growth))))(xs, ns)
    joint = np.asarray(jit(jacfwd(grad(lambda xs: vmap(growth)(xs, ns).sum())))(xs))
    close(hessians, joint[range(3), :, range(3)])


@pytest.mark.full
def test_examples_that_are_done_do_not_spoil_the_gradient() -> None:
    """Further turns would take the root of a negative number, whose derivative is not a number."""

    def f(x: Any, w: Any) -> Any:
        return lax.while_loop(lambda x: x > 0.1, lambda x: jnp.sqrt(x - 0.1) * w - 0.3, x, max_steps=30)

    def in_python(x: Any, w: Any) -> Any:
        while x > 0.1:
            x = np.sqrt(x - 0.1) * w - 0.3
        return x

    xs = np.asarray([0.05, 0.3, 0.9])
    of_x = np.asarray([slope(lambda x: in_python(x, 0.7), x) for x in xs])
    of_w = slope(lambda w: sum(in_python(x, w) for x in xs), 0.7)
    total = lambda xs, w: vmap(f, (0, None))(xs, w).sum()
    found = jit(grad(total, (0, 1)))(jnp.asarray(xs), 0.7)
    close(found, (of_x, of_w), FINITE)
    each = vmap(grad(f, (0, 1)), (0, None))(jnp.asarray(xs), 0.7)
    close((each[0], each[1].sum()), found)


@pytest.mark.full
def test_newtons_method_backwards() -> None:
    def root(a: Any, start: Any) -> Any:
        apart = lambda x: abs(x * x - a) > 1e-13
        return lax.while_loop(apart, lambda x: 0.5 * (x + a / x), start, max_steps=50)

    close(grad(root)(2.0, 1.0), 0.5 / np.sqrt(2))
    close(grad(grad(root))(2.0, 1.0), -0.25 * 2**-1.5)
    close(grad(root, 1)(2.0, 1.0), 0.0, 1e-6)
    a = jnp.arange(2.0, 6.0)
    close(grad(lambda a: vmap(root, (0, None))(a, 1.0).sum())(a), 0.5 / np.sqrt(np.asarray(a)))


@pytest.mark.full
def test_loops_in_loops_and_in_scans() -> None:
    def inner(x: Any, n: Any) -> Any:
        return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, jnp.sin(c[1]) * x), (0, x), max_steps=5)[1]

    def outer(x: Any) -> Any:
        return lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, inner(c[1], c[0]) + x), (0, x), max_steps=9)[1]

    def outer_in_numpy(x: Any) -> Any:
        y = x
        for i in range(3):
            z = y
            for _ in range(i):
                z = np.sin(z) * y
            y = z + x
        return y

    close(jit(grad(outer))(0.6), slope(outer_in_numpy, 0.6), FINITE)
    scanned = lambda x: lax.scan(lambda c, n: (inner(c, n), c * c), x, jnp.asarray([1, 0, 3]))
    total = lambda x: scanned(x)[0] + scanned(x)[1].sum()

    def total_in_numpy(x: Any) -> Any:
        c, squares = x, 0.0
        for n in (1, 0, 3):
            squares, y = squares + c * c, c
            for _ in range(n):
                y = np.sin(y) * c
            c = y
        return c + squares

    close(jit(grad(total))(0.8), slope(total_in_numpy, 0.8), FINITE)
    twice = jit(grad(lambda x: vmap(total)(x).sum()))(jnp.asarray([0.8, 0.5]))
    close(twice, np.stack([slope(total_in_numpy, x) for x in (0.8, 0.5)]), FINITE)


@pytest.mark.full
def test_memory_grows_with_the_square_root() -> None:
    """A carry is 800 bytes; 10000 turns keep the starts of 100 blocks, and a block is computed again with 100."""

    def f(x: Any, limit: int) -> Any:
        return lax.while_loop(lambda c: c[0] < 5000, lambda c: (c[0] + 1, jnp.sin(c[1]) * x), (0, x), max_steps=limit)

    x = jnp.linspace(0.1, 1.0, 100)
    kept = residual_bytes(lambda x: f(x, 10_000)[1], x)
    assert 100 * 800 <= kept < 110 * 800 + 5000
    loss = lambda x: f(x, 10_000)[1].sum()
    for derivative, states in ((grad(loss), 500), (grad(lambda x: grad(loss)(x) @ x), 1500)):
        compiled = jit(derivative).lower(x).compile()
        assert compiled.memory_analysis().temp_size_in_bytes < states * 800


def test_linear_loops_are_transposed() -> None:
    matrix = np.asarray([[1.0, 2.0], [0.5, -1.0]])
    loop = lambda x: lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, matrix @ c[1]), (0, x), max_steps=8)[1]
    ct = jnp.asarray([1.0, -2.0])
    close(xlamini.linear_transpose(loop, ct)(ct)[0], np.linalg.matrix_power(matrix, 3).T @ np.asarray(ct), EXACT)


@pytest.mark.full
def test_forward_mode_of_the_pullback() -> None:
    x, v = jnp.asarray(POINT), jnp.asarray([1.0, 0.0, -1.0])
    expected = jacfwd(jacfwd(lambda x: unrolled(x, 3)))(x) @ v
    close(jvp(grad(lambda x: growth(x, 3)), (x,), (v,))[1], expected)
    close(grad(lambda x: jvp(lambda x: growth(x, 3), (x,), (v,))[1])(x), expected)
    close(grad(lambda x: grad(lambda x: growth(x, 3))(x) @ v)(x), expected)
