"""while_loop and fori_loop beside loops in Python, finite differences, and programs recorded from JAX 0.10.2."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import grad, jacfwd, jit, jvp, lax, numpy as jnp, random, vmap
from xlamini.core.program.jaxpr import close_over
from xlamini.interpreters.partial_eval import partial_eval

STEP, FINITE, EXACT = 1e-5, 1e-6, 1e-10
"""Of finite differences in double precision, the tolerance beside them, and between two ways to one number."""


@pytest.fixture(autouse=True)
def in_double() -> Iterator[None]:
    with xlamini.enable_x64(True):
        yield


def close(found: Any, expected: Any, tolerance: float = EXACT) -> None:
    found, expected = xlamini.tree.leaves(found), xlamini.tree.leaves(expected)
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=tolerance, atol=tolerance)


def slope(f: Callable[[float], Any], x: float) -> Any:
    """The derivative of `f` at `x` by central differences."""
    ahead, behind = (np.asarray(f(x + sign * STEP), np.float64) for sign in (1, -1))
    return (ahead - behind) / (2 * STEP)


def in_python(cond: Callable[[Any], Any], body: Callable[[Any], Any], value: Any) -> Any:
    while cond(value):
        value = body(value)
    return value


# --- values


LOOPS: dict[str, tuple[Callable, Callable, Any]] = {
    "number": (lambda x: x < 100, lambda x: 3 * x, 2),
    "no turn": (lambda x: x < 0, lambda x: 3 * x, 2.5),
    "float": (lambda x: x < 100, lambda x: 1.5 * x + 1, 0.25),
    "array": (lambda x: x.sum() < 50, lambda x: x * x + 1, np.arange(3.0)),
    "tuple": (lambda c: c[0] < 7, lambda c: (c[0] + 1, c[1] * c[0]), (1, 1.0)),
    "tree": (
        lambda c: c["n"] < 4,
        lambda c: {"n": c["n"] + 1, "w": [c["w"][1], (c["w"][0][0] + c["w"][1],)][::-1]},
        {"n": 0, "w": [(np.ones(2),), np.arange(2.0)]},
    ),
    "bool": (lambda c: c[0], lambda c: (c[1] < 3, c[1] + 1), (True, 0)),
    "swap": (lambda c: c[2] < 5, lambda c: (c[1], c[0] + c[1], c[2] + 1), (0, 1, 0)),
    "nothing but none": (lambda c: c[1] < 2, lambda c: (None, c[1] + 1), (None, 0)),
}


@pytest.mark.parametrize("name", LOOPS)
def test_equals_the_loop_in_python(name: str) -> None:
    cond, body, init = LOOPS[name]
    expected = in_python(cond, body, init)
    loop = lambda value: lax.while_loop(cond, body, value)
    found = loop(init)
    close(found, expected)
    assert xlamini.tree.structure(found) == xlamini.tree.structure(init)
    close(jit(loop)(init), expected)
    close(lax.while_loop(cond, body, init, max_steps=20), expected)
    with xlamini.disable_jit():
        close(loop(init), expected)


def test_a_limit_ends_the_loop() -> None:
    def loop(x: Any, n: int) -> Any:
        return lax.while_loop(lambda x: x < 100, lambda x: 2 * x, x, max_steps=n)

    for n in (0, 1, 3, 7, 9):
        assert int(loop(1, n)) == min(2**n, 128)
        with xlamini.disable_jit():
            assert int(loop(1, n)) == min(2**n, 128)
    close(vmap(lambda x: loop(x, 5))(jnp.arange(1, 40, 13)), np.asarray([32, 112, 108]))


def test_a_number_takes_on_the_type_that_the_body_returns() -> None:
    x = jnp.float32(2)
    stays = lax.while_loop(lambda c: c < 5, lambda c: c + 1, 0)
    assert (stays.dtype, stays.weak_type) == (np.int64, True)
    strong = lax.while_loop(lambda c: c < 5, lambda c: c + x, 0.0)
    assert (strong.dtype, strong.weak_type) == (np.float32, False)
    wider = lax.while_loop(lambda c: c < 5, lambda c: c + x, 0)
    assert (wider.dtype, wider.weak_type) == (np.float32, False)
    chain = lax.while_loop(lambda c: c[0] < 5, lambda c: (c[0] + c[1] + x, c[2], c[3], x), (0, 0, 0, 0))
    assert [a.dtype for a in chain] == [np.float32] * 4
    kept = lax.while_loop(lambda c: c < 5, lambda c: 7.0, x)
    assert (kept.dtype, kept.weak_type, float(kept)) == (np.float32, False, 7.0)


def test_values_from_around_the_loop() -> None:
    scale, stop = jnp.asarray(1.5), np.asarray(40.0)

    def f(x: Any, y: Any) -> Any:
        return lax.while_loop(lambda c: c < stop + y, lambda c: c * scale + x, y)

    expected = in_python(lambda c: c < 43.0, lambda c: c * 1.5 + 2.0, 3.0)
    close(f(2.0, 3.0), expected)
    close(jit(f)(2.0, 3.0), expected)
    close(jit(lambda x: jit(lambda y: f(x, y))(3.0))(2.0), expected)
    rows = [[in_python(lambda c: c < 40 + y, lambda c: c * 1.5 + x, y) for y in (0.0, 1.0)] for x in (1.0, 2.0)]  # noqa: B023
    close(vmap(lambda x: vmap(lambda y: f(x, y))(jnp.arange(2.0)))(jnp.arange(1.0, 3.0)), np.asarray(rows))
    close(grad(lambda x: x * lax.while_loop(lambda n: n < 10, lambda n: n + 1, 0))(2.0), 10.0)


@pytest.mark.full
def test_keys_are_carried() -> None:
    def loop(n: Any) -> Any:
        first = random.key(3)
        return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, random.split(c[1])[0]), (0, first))[1]

    keys = [random.key(3)]
    for _ in range(3):
        keys.append(random.split(keys[-1])[0])
    expected = np.stack([random.key_data(k) for k in keys])
    close(random.key_data(jit(loop)(3)), expected[3])
    close(random.key_data(vmap(loop)(jnp.arange(4))), expected)
    bits = vmap(lambda x: jvp(lambda x: x * random.uniform(loop(2)), (x,), (x,))[1])(jnp.ones(2))
    close(bits, jnp.full(2, random.uniform(keys[2])))


# --- derivatives in forward mode


def newton(a: Any, start: Any = 1.0) -> Any:
    """The square root, by as many turns as it takes."""
    apart = lambda s: abs(s[1] * s[1] - a) > 1e-13
    return lax.while_loop(apart, lambda s: (s[0] + 1, 0.5 * (s[1] + a / s[1])), (0, start))[1]


def growth(x: Any, n: Any) -> Any:
    """A vector that changes n times, by a matrix and elementwise."""
    def body(c: Any) -> Any:
        i, y, total = c
        y = jnp.sin(y) * x + 0.1 * jnp.roll(y, 1)
        return i + 1, y, total + y * y

    return lax.while_loop(lambda c: c[0] < n, body, (0, x * x, jnp.zeros(3)))[2]


def growth_in_numpy(x: Any, n: int) -> Any:
    y, total = x * x, np.zeros(3)
    for _ in range(n):
        y = np.sin(y) * x + 0.1 * np.roll(y, 1)
        total = total + y * y
    return total


POINT = np.asarray([0.3, 0.7, 1.1])


@pytest.mark.full
def test_forward_mode_of_newtons_method() -> None:
    close(newton(2.0), np.sqrt(2))
    derivatives = [0.5 * 2**-0.5, -0.25 * 2**-1.5, 0.375 * 2**-2.5]
    f: Callable[..., Any] = newton
    for expected in derivatives:
        f = jacfwd(f)
        close(jit(f)(2.0), expected)
    a = jnp.arange(2.0, 6.0)
    close(vmap(jacfwd(newton))(a), 0.5 / np.sqrt(a))
    close(jacfwd(vmap(newton))(a), np.diag(0.5 / np.sqrt(a)))
    close(jit(vmap(vmap(jacfwd(newton), (0, None)), (None, 0)))(a, jnp.ones(2)), np.stack([0.5 / np.sqrt(a)] * 2))


@pytest.mark.parametrize("n", [0, 1, 4])
def test_forward_mode_beside_finite_differences(n: int) -> None:
    direction = np.asarray([1.0, -2.0, 0.5])
    close(growth(POINT, n), growth_in_numpy(POINT, n))
    expected = slope(lambda t: growth_in_numpy(POINT + t * direction, n), 0.0)
    value, tangent = jvp(lambda x: growth(x, n), (jnp.asarray(POINT),), (jnp.asarray(direction),))
    close(value, growth_in_numpy(POINT, n))
    close(tangent, expected, FINITE)
    value, pushforward = xlamini.linearize(lambda x: growth(x, n), jnp.asarray(POINT))
    close(pushforward(jnp.asarray(direction)), tangent)
    of_linear = lambda x: xlamini.linearize(lambda x: growth(x, n), x)[1](jnp.asarray(direction))
    twice = jvp(of_linear, (jnp.asarray(POINT),), (jnp.asarray(direction),))[1]
    close(twice, jacfwd(jacfwd(lambda t: growth(POINT + t * direction, n)))(0.0))


def test_the_linear_half_keeps_only_the_start() -> None:
    assert residual_bytes(lambda x: growth(x, 1000), jnp.asarray(POINT)) < 200


def residual_bytes(f: Callable[..., Any], *args: Any) -> int:
    """What reverse mode keeps of `f`, beside constants."""
    _, pullback = xlamini.vjp(f, *args)
    return sum(np.asarray(x).nbytes for x in xlamini.tree.leaves(pullback))


# --- batches


def power(x: Any, n: Any, start: Any, step: Any) -> Any:
    """Values in the condition (n), in the body (x, step) and at the start."""
    return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + step, c[1] * x, c[2]), (0, start, x))


def power_in_numpy(x: Any, n: Any, start: Any, step: Any) -> Any:
    return in_python(lambda c: c[0] < n, lambda c: (c[0] + step, c[1] * x, c[2]), (0, start, x))


BATCHES = [
    (0, None, None, None), (None, 0, None, None), (None, None, 0, None), (None, None, None, 0), (0, 0, 0, 0),
    (0, None, 0, None), (None, 0, 0, None),
]


@pytest.mark.parametrize("dims", BATCHES, ids=str)
def test_every_operand_may_be_batched(dims: tuple) -> None:
    every = [np.asarray([1.5, -2.0, 0.5]), np.asarray([4, 0, 7]), np.asarray([1.0, 2.0, -1.0]), np.asarray([1, 2, 3])]
    args = [v if d == 0 else v[0] for v, d in zip(every, dims, strict=True)]
    rows = [power_in_numpy(*(v[i] if d == 0 else v[0] for v, d in zip(every, dims, strict=True))) for i in range(3)]
    expected = [np.stack(column) for column in zip(*rows, strict=True)]
    close(vmap(power, dims)(*args), expected)
    close(jit(vmap(power, dims, out_axes=-1))(*args), expected)
    tangent = vmap(lambda *xs: jvp(lambda x: power(x, *xs[1:])[1], (xs[0],), (1.0,))[1], dims)
    joint = jvp(lambda x: vmap(power, dims)(args[0] + x * jnp.ones_like(args[0]), *args[1:])[1], (0.0,), (1.0,))[1]
    close(tangent(*map(jnp.asarray, args)), joint)


@pytest.mark.full
def test_batches_of_batches() -> None:
    x, n = jnp.asarray([1.5, -2.0]), jnp.asarray([0, 2, 5])
    expected = np.asarray(x)[:, None] ** np.asarray(n)
    f = lambda x, n: power(x, n, 1.0, 1)[1]
    close(vmap(vmap(f, (None, 0)), (0, None))(x, n), expected)
    close(vmap(vmap(f, (0, None)), (None, 0))(x, n), expected.T)
    slopes = np.asarray(n) * np.asarray(x)[:, None] ** np.maximum(np.asarray(n) - 1, 0)
    df = lambda x, n: jvp(lambda x: f(x, n), (x,), (1.0,))[1]
    close(jit(vmap(vmap(df, (None, 0)), (0, None)))(x, n), slopes)
    close(jacfwd(lambda s: vmap(vmap(f, (None, 0)), (0, None))(x + s, n))(0.0), slopes)


def test_an_example_that_is_done_is_left_alone() -> None:
    """Further turns would divide by zero and take the root of a negative number."""
    f = lambda x: lax.while_loop(lambda x: x > 0, lambda x: jnp.sqrt(x) - 1.0 / x * 0.1 - 0.3, x)
    xs = jnp.asarray([0.5, -1.0, 0.0, 3.0])
    expected = [in_python(lambda x: x > 0, lambda x: x**0.5 - 1.0 / x * 0.1 - 0.3, float(x)) for x in xs]
    close(vmap(f)(xs), np.asarray(expected))
    tangents = jvp(vmap(f), (xs,), (jnp.ones(4),))[1]
    close(tangents, np.stack([jvp(f, (x,), (1.0,))[1] for x in xs]))
    assert np.isfinite(np.asarray(tangents)).all()


def test_a_condition_that_does_not_depend_on_the_batch_stays_one_number() -> None:
    text = str(xlamini.make_jaxpr(vmap(lambda x: power(x, 5, 1.0, 1)[1]))(jnp.ones(3)))
    assert "bool[3]" not in text
    assert "select" not in jit(vmap(lambda x: power(x, 5, 1.0, 1)[1])).lower(jnp.ones(3)).as_text()


# --- what is not needed, what is known, effects


def test_carries_that_nothing_needs_are_removed() -> None:
    def f(x: Any) -> Any:
        body = lambda c: (c[0] + 1, c[1] * x, c[2] + c[0], jnp.sin(c[3]) + c[1])
        return lax.while_loop(lambda c: c[0] < 3, body, (0, 1.0, 0, x))

    text = jit(lambda x: f(x)[2]).lower(2.0).as_text()
    assert "f64" not in text and "sine" not in text
    close(jit(lambda x: f(x)[2])(2.0), 3)
    text = jit(lambda x: f(x)[1]).lower(2.0).as_text()
    assert "sine" not in text and "multiply" in text
    close(jit(lambda x: f(x)[1])(2.0), 8.0)


def test_what_does_not_depend_on_the_unknown_is_known() -> None:
    def loss(x: Any, n: Any) -> Any:
        c = lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 2.0), (0, 1.0))
        return x * c[1]

    close(jit(grad(loss))(3.0, 4), 16.0)
    close(jit(grad(xlamini.checkpoint(loss)))(3.0, 4), 16.0)
    both = lambda x, n: lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 2.0, c[2] * x), (0, 1.0, x))
    kept = lambda x, n: xlamini.checkpoint(lambda x: both(x, n)[1] * x)(x)
    close(jit(grad(kept))(3.0, 4), 16.0)


def test_the_loop_of_what_is_known_is_its_own() -> None:
    def loop(x: Any, n: Any) -> Any:
        return lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * 2.0, c[2] * x), (0, 1.0, x))

    jaxpr = close_over(xlamini.make_jaxpr(loop)(2.0, 3).jaxpr)
    assert partial_eval(jaxpr, (True, False)).unknown_out == (False, False, True)
    assert partial_eval(jaxpr, (False, True)).unknown_out == (True, True, True)
    known = partial_eval(jaxpr, (True, False)).known
    assert "f64[] = mul" in str(known) and str(known).count("mul") == 1


def test_printing_happens_once(capfd: pytest.CaptureFixture[str]) -> None:
    def body(c: Any) -> Any:
        xlamini.debug.print("turn {}", c[0])
        return c[0] + 1, c[1] * 2.0

    f = lambda x: lax.while_loop(lambda c: c[0] < 2, body, (0, x))[1]
    pushforward = xlamini.linearize(f, 1.0)[1]
    close(pushforward(1.0), 4.0)
    xlamini.effects_barrier()
    assert capfd.readouterr().out == "turn 0\nturn 1\n"


def test_ordered_effects_in_condition_and_body(capfd: pytest.CaptureFixture[str]) -> None:
    def announce(text: str, x: Any) -> Any:
        xlamini.debug.print(text, x, ordered=True)
        return x

    loop = lambda n: lax.while_loop(lambda c: announce("test {}", c) < n, lambda c: announce("turn {}", c) + 1, 0)
    close(jit(loop)(2), 2)
    xlamini.effects_barrier()
    assert capfd.readouterr().out.split("\n")[:-1] == ["test 0", "turn 0", "test 1", "turn 1", "test 2"]
    condition = jit(loop).lower(2).as_text().split("cond {")[1].split("} do {")[0]
    assert "custom_call" not in condition


# --- recorded from JAX 0.10.2


CLOSED = """{ lambda ; a:f32[] b:i32[]. let
    c:i32[] d:f32[] = while[
      body_jaxpr={ lambda ; e:f32[] f:i32[] g:f32[]. let
          h:i32[] = add f 1:i32[]
          i:f32[] = mul g e
        in (h, i) }
      body_nconsts=1
      cond_jaxpr={ lambda ; j:i32[] k:i32[] l:f32[]. let
          m:bool[] = lt k j
        in (m,) }
      cond_nconsts=1
    ] b a 0:i32[] 1.0:f32[]
  in (c, d) }"""
PROMOTED = """{ lambda ; a:f32[]. let
    b:f32[] = while[
      body_jaxpr={ lambda ; c:f32[] d:f32[]. let e:f32[] = add d c in (e,) }
      body_nconsts=1
      cond_jaxpr={ lambda ; f:f32[]. let g:bool[] = lt f 5.0:f32[] in (g,) }
      cond_nconsts=0
    ] a 0.0:f32[]
  in (b,) }"""
BATCHED = """{ lambda ; a:i32[3]. let
    b:i32[3] = broadcast_in_dim 0:i32[]
    c:i32[3] = broadcast_in_dim 0:i32[]
    _:i32[3] _:i32[3] d:i32[3] = while[
      body_jaxpr={ lambda ; e:i32[3] f:i32[3] g:i32[3]. let
          h:i32[3] = add e 1:i32[]
          i:i32[3] = add g e
        in (h, f, i) }
      body_nconsts=0
      cond_jaxpr={ lambda ; j:i32[3] k:i32[3] l:i32[3]. let
          m:bool[3] = lt j k
        in (m,) }
      cond_nconsts=0
    ] b a c
  in (d,) }"""


def test_programs_print_as_jax_prints_them() -> None:
    closed = lambda x, n: lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] * x), (0, 1.0))
    promoted = lambda x: lax.while_loop(lambda c: c < 5, lambda c: c + x, 0)
    batched = vmap(lambda n: lax.fori_loop(0, n, lambda i, c: c + i, 0))
    with xlamini.enable_x64(False):
        assert str(xlamini.make_jaxpr(closed)(2.0, 3)) == CLOSED
        assert str(xlamini.make_jaxpr(promoted)(jnp.float32(2))) == PROMOTED
        assert str(xlamini.make_jaxpr(batched)(jnp.arange(3))) == BATCHED


@pytest.mark.parametrize("dear", [False, True])
def test_a_batched_predicate_is_carried_only_if_it_is_dear(dear: bool) -> None:
    def last(limit: Any) -> Any:
        bound = (lambda x: jnp.sin(x).sum() * 0 + x.sum()) if dear else (lambda x: x[0])
        return lax.while_loop(lambda x: bound(x) < limit, lambda x: x.at[0].add(1.0), jnp.zeros(3))

    limits = jnp.array([1.0, 0.0, 4.0])
    run = xlamini.jit(xlamini.vmap(last))
    np.testing.assert_array_equal(run(limits), [[1, 0, 0], [0, 0, 0], [4, 0, 0]])
    start = run.lower(limits).as_text().partition("stablehlo.while(")[2].partition("cond {")[0]
    assert ("tensor<3xi1>" in start) == dear
