"""fori_loop beside loops in Python, finite differences, and programs recorded from JAX 0.10.2."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.transforms.test_while_loop import FINITE, close, slope
from xlamini import grad, jacfwd, jacrev, jit, lax, numpy as jnp, vmap


@pytest.fixture(autouse=True)
def in_double() -> Iterator[None]:
    with xlamini.enable_x64(True):
        yield


def in_python(lower: int, upper: int, body: Callable[[Any, Any], Any], value: Any) -> Any:
    for i in range(lower, upper):
        value = body(i, value)
    return value


BODIES: dict[str, tuple[Callable, Any]] = {
    "sum": (lambda i, c: c + i, 0),
    "float": (lambda i, c: c * 0.5 + i, 1.5),
    "tree": (lambda i, c: {"a": c["b"] * i, "b": c["a"] + 1.0}, {"a": np.ones(2), "b": np.arange(2.0)}),
    "unchanged": (lambda i, c: c, np.arange(3.0)),
    "index": (lambda i, c: i, -1),
}


@pytest.mark.parametrize("bounds", [(0, 5), (2, 4), (3, 3), (5, 2), (-3, 2)], ids=str)
@pytest.mark.parametrize("name", BODIES)
def test_equals_the_loop_in_python(name: str, bounds: tuple[int, int]) -> None:
    body, init = BODIES[name]
    expected = in_python(*bounds, body, init)
    loop = lambda lower, upper: lax.fori_loop(lower, upper, body, init)
    close(jit(loop)(*bounds), expected)
    close(jit(lambda: lax.fori_loop(*bounds, body, init, unroll=2))(), expected)
    close(loop(*map(jnp.asarray, bounds)), expected)
    with xlamini.disable_jit():
        close(loop(*bounds), expected)


def test_the_index_has_the_dtype_of_the_bounds() -> None:
    seen = []

    def body(i: Any, c: Any) -> Any:
        seen.append((i.dtype, i.weak_type))
        return c

    lax.fori_loop(0, 3, body, 0)
    lax.fori_loop(jnp.int16(0), jnp.int16(3), body, 0)
    lax.fori_loop(0, jnp.uint8(3), body, 0)
    jit(lambda n: lax.fori_loop(0, n, body, 0))(jnp.int32(3))
    jit(lambda n: lax.fori_loop(0, n, body, 0))(3)  # of the types of the first, which is not traced again
    assert seen == [(np.int64, True), (np.int16, False), (np.uint8, False), (np.int32, False)]


def test_bounds_may_be_floats() -> None:
    """As in JAX: known ones are truncated, and i is an integer; others count up to the bound, and i is a float."""
    seen = []

    def body(i: Any, c: Any) -> Any:
        seen.append(i.dtype.kind)
        return c + i

    assert float(lax.fori_loop(-1.5, np.float32(2.9), body, 0.0)) == 0.0
    assert float(jit(lambda n: lax.fori_loop(n * 0, n, body, 0.0))(np.float32(2.5))) == 3.0
    assert vmap(lambda n: lax.fori_loop(0.5, n, body, 1.0))(np.array([0.0, 1.0, 2.0])).tolist() == [1.0, 1.5, 3.0]
    assert seen[0] == "i" and set(seen[1:]) == {"f"}
    with pytest.raises(TypeError, match="upper must be one integer, got float"):
        lax.fori_loop(0, 2.5, body, 0.0)


def chain(x: Any, n: Any, **options: Any) -> Any:
    return lax.fori_loop(1, n, lambda i, c: jnp.sin(c * x) + c / i, x * x, **options)


def chain_in_python(x: Any, n: int) -> Any:
    return in_python(1, n, lambda i, c: np.sin(c * x) + c / i, x * x)


@pytest.mark.full
@pytest.mark.parametrize("unroll", [None, 3, True])
def test_reverse_mode_with_bounds_that_are_known(unroll: Any) -> None:
    f = lambda x: chain(x, 6, unroll=unroll)
    expected = slope(lambda x: chain_in_python(x, 6), 0.7)
    for derivative in (grad(f), jit(grad(f)), grad(jit(f)), jacfwd(f), jacrev(f)):
        close(derivative(0.7), expected, FINITE)
    second = jacfwd(jacfwd(f))(0.7)
    close(second, slope(lambda x: grad(f)(x), 0.7), FINITE)
    close(grad(grad(f))(0.7), second)
    close(jit(grad(grad(grad(f))))(0.7), jacfwd(jacfwd(jacfwd(f)))(0.7))


def test_a_bound_computed_from_known_values_is_known() -> None:
    lengths = jnp.asarray([2, 6, 4])
    f = lambda x: chain(x, lengths.max())
    close(grad(f)(0.7), slope(lambda x: chain_in_python(x, 6), 0.7), FINITE)


@pytest.mark.full
def test_traced_bounds_have_forward_mode_and_batches() -> None:
    ns, xs = np.asarray([0, 1, 3, 6]), np.asarray([0.7, -0.2, 1.1, 0.4])
    expected = [chain_in_python(x, n) for x, n in zip(xs, ns, strict=True)]
    slopes = [slope(lambda x, n=n: chain_in_python(x, n), x) for x, n in zip(xs, ns, strict=True)]
    close(vmap(chain)(xs, ns), np.asarray(expected))
    close(jit(vmap(jacfwd(chain)))(xs, ns), np.asarray(slopes), FINITE)
    close(jit(jacfwd(chain))(xs[2], 3), slopes[2], FINITE)
    lower = vmap(lambda n: lax.fori_loop(n, 6, lambda i, c: c + i, 0))(jnp.asarray(ns))
    close(lower, np.asarray([sum(range(n, 6)) for n in ns]))


@pytest.mark.full
def test_loops_in_loops() -> None:
    def outer(x: Any) -> Any:
        def turn(i: Any, c: Any) -> Any:
            return lax.fori_loop(0, 2, lambda j, d: jnp.sin(d) * x + i * j, c) + c

        return lax.fori_loop(0, 3, turn, x)

    def outer_in_python(x: Any) -> Any:
        turn = lambda i, c: in_python(0, 2, lambda j, d: np.sin(d) * x + i * j, c) + c
        return in_python(0, 3, turn, x)

    close(outer(0.3), outer_in_python(0.3))
    close(jit(grad(outer))(0.3), slope(outer_in_python, 0.3), FINITE)
    close(vmap(grad(outer))(jnp.asarray([0.3, 0.5])), np.stack([grad(outer)(0.3), grad(outer)(0.5)]))
    close(grad(lambda x: vmap(outer)(x).sum())(jnp.asarray([0.3, 0.5])), vmap(grad(outer))(jnp.asarray([0.3, 0.5])))
    triangle = lambda n: lax.fori_loop(0, n, lambda i, c: lax.fori_loop(0, i, lambda j, d: d + j, c), 0)
    close(jit(vmap(triangle))(jnp.arange(6)), np.asarray([sum(sum(range(i)) for i in range(n)) for n in range(6)]))


@pytest.mark.full
def test_hessian() -> None:
    matrix = np.asarray([[0.3, -0.2], [0.5, 0.1]])
    f = lambda w: lax.fori_loop(0, 4, lambda i, c: jnp.tanh(w @ c), jnp.ones(2)).sum()
    gradient = lambda w: in_numpy_gradient(w)

    def in_numpy_gradient(w: Any) -> Any:
        return np.asarray(jacfwd(f)(jnp.asarray(w)))

    def of_entry(k: int) -> Any:
        step = np.eye(4)[k].reshape(2, 2)
        return slope(lambda t: gradient(matrix + t * step), 0.0)

    expected = np.stack([of_entry(k) for k in range(4)], -1).reshape(2, 2, 2, 2)
    close(jit(xlamini.hessian(f))(matrix), expected, FINITE)
    close(jit(jacrev(jacrev(f)))(matrix), expected, FINITE)


# --- recorded from JAX 0.10.2


STATIC = """{ lambda ; a:f32[3]. let
    _:i32[] b:f32[3] = scan[
      jaxpr={ lambda ; c:f32[3] d:i32[] e:f32[3]. let
          f:i32[] = add d 1:i32[]
          g:f32[] = convert_element_type[new_dtype=float32 weak_type=False] d
          h:f32[3] = mul e g
          i:f32[3] = add h c
        in (f, i) }
      length=5
      num_carry=2
      num_consts=1
      reverse=False
      unroll=1
    ] a 0:i32[] a
  in (b,) }"""
DYNAMIC = """{ lambda ; a:f32[3] b:i32[]. let
    _:i32[] _:i32[] c:f32[3] = while[
      body_jaxpr={ lambda ; d:f32[3] e:i32[] f:i32[] g:f32[3]. let
          h:i32[] = add e 1:i32[]
          i:f32[] = convert_element_type[new_dtype=float32 weak_type=False] e
          j:f32[3] = mul g i
          k:f32[3] = add j d
        in (h, f, k) }
      body_nconsts=1
      cond_jaxpr={ lambda ; l:i32[] m:i32[] n:f32[3]. let
          o:bool[] = lt l m
        in (o,) }
      cond_nconsts=0
    ] a 0:i32[] b a
  in (c,) }"""


def test_programs_print_as_jax_prints_them() -> None:
    loop = lambda n: lambda x: lax.fori_loop(0, n, lambda i, c: c * i + x, x)
    with xlamini.enable_x64(False):
        assert str(xlamini.make_jaxpr(loop(5))(jnp.ones(3))) == STATIC
        assert str(xlamini.make_jaxpr(lambda x, n: loop(n)(x))(jnp.ones(3), 4)) == DYNAMIC
