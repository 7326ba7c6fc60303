"""map and associative_scan beside loops in Python and NumPy, and programs recorded from JAX 0.10.2."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest

import xlamini
from tests.support.checks import assert_close
from xlamini import grad, jit, jvp, lax, make_jaxpr, numpy as jnp, random, vmap
from xlamini.ref import new_ref

EXACT = 1e-10
XS = np.cos(np.arange(14.0)).reshape(7, 2)


@pytest.fixture(autouse=True)
def in_double() -> Iterator[None]:
    with xlamini.enable_x64(True):
        yield


# --- map


@pytest.mark.sample(12)
@pytest.mark.parametrize("batch_size", [None, 1, 2, 3, 7, 8, np.int32(4)])
def test_map_equals_vmap(batch_size: Any) -> None:
    table = jnp.arange(2.0)

    def f(x: Any) -> Any:
        return {"y": jnp.sin(x["a"]) * x["b"] + table, "z": [x["b"] > 0, None]}

    xs = {"a": XS, "b": XS[:, 0]}
    expected = vmap(f)(xs)
    mapped = lambda xs: lax.map(f, xs, batch_size=batch_size)
    for run in (mapped, jit(mapped)):
        found = run(xs)
        assert xlamini.tree.structure(found) == xlamini.tree.structure(expected)
        for a, b in zip(xlamini.tree.leaves(found), xlamini.tree.leaves(expected), strict=True):
            assert_close(a, b, EXACT)
    with xlamini.disable_jit():
        assert_close(lax.map(f, xs, batch_size=batch_size)["y"], expected["y"], EXACT)


@pytest.mark.full
@pytest.mark.parametrize("batch_size", [None, 3])
def test_derivatives_of_map(batch_size: Any) -> None:
    def mapped(w: Any, xs: Any) -> Any:
        return (lax.map(lambda x: jnp.sin(w * x).sum() * x, xs, batch_size=batch_size) ** 2).sum()

    def plain(w: Any, xs: Any) -> Any:
        return (vmap(lambda x: jnp.sin(w * x).sum() * x)(xs) ** 2).sum()

    w = np.array([0.3, 0.7])
    for found, expected in zip(jit(grad(mapped, (0, 1)))(w, XS), grad(plain, (0, 1))(w, XS), strict=True):
        assert_close(found, expected, EXACT)
    assert_close(jvp(mapped, (w, XS), (w, XS))[1], jvp(plain, (w, XS), (w, XS))[1], EXACT)
    assert_close(xlamini.hessian(mapped)(w, XS), xlamini.hessian(plain)(w, XS), EXACT)
    assert_close(vmap(mapped, (0, None))(np.stack([w, -w]), XS), [plain(w, XS), plain(-w, XS)], EXACT)


@pytest.mark.parametrize("batch_size", [None, 2])
def test_map_of_no_slices(batch_size: Any) -> None:
    assert lax.map(lambda x: (x * 2, x.sum()), XS[:0], batch_size=batch_size)[0].shape == (0, 2)
    assert lax.map(lambda x: None, XS, batch_size=batch_size) is None


@pytest.mark.full
def test_map_of_keys() -> None:
    keys = random.split(random.key(0), 5)
    expected = vmap(random.normal)(keys)
    assert_close(lax.map(random.normal, keys), expected, EXACT)
    assert_close(lax.map(random.normal, keys, batch_size=2), expected, EXACT)


def test_map_writes_a_ref() -> None:
    r = new_ref(1.0)

    def f(x: Any) -> Any:
        r[...] += x
        return r[...]

    assert_close(lax.map(f, np.arange(3.0)), [1, 2, 4], 0)
    assert_close(r[...], 4, 0)


def test_map_is_printed_as_by_jax() -> None:
    """JAX 0.10.2 prints the same, and `dimensions` and `sharding` of reshape."""
    with xlamini.enable_x64(False):
        found = str(make_jaxpr(lambda xs: lax.map(jnp.sin, xs, batch_size=2))(np.ones(5)))
    assert found == MAP


MAP = """\
{ lambda ; a:f32[5]. let
    b:f32[4] = slice[limit_indices=(4,) start_indices=(0,) strides=None] a
    c:f32[2,2] = reshape[new_sizes=(2, 2)] b
    d:f32[1] = slice[limit_indices=(5,) start_indices=(4,) strides=None] a
    e:f32[2,2] = scan[
      jaxpr={ lambda ; f:f32[2]. let g:f32[2] = sin f in (g,) }
      length=2
      num_carry=0
      num_consts=0
      reverse=False
      unroll=1
    ] c
    h:f32[1] = sin d
    i:f32[4] = reshape[new_sizes=(4,)] e
    j:f32[5] = concatenate[dimension=0] i h
  in (j,) }"""


# --- associative_scan


def affine(a: Any, b: Any) -> Any:
    """Composition of x -> s x + t: associative, not commutative."""
    return {"s": a["s"] * b["s"], "t": a["t"] * b["s"] + b["t"]}


@pytest.mark.sample(12)
@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 7, 8, 13])
@pytest.mark.parametrize("reverse", [False, True])
def test_all_running_results(n: int, reverse: bool) -> None:
    elems = {"s": np.cos(np.arange(float(n))), "t": np.sin(np.arange(float(n)))}
    found = lax.associative_scan(affine, elems, reverse=reverse)
    assert found["t"].shape == (n,)
    order = range(n - 1, -1, -1) if reverse else range(n)
    rows, total = {}, None
    for i in order:
        row = {k: v[i] for k, v in elems.items()}
        total = rows[i] = row if total is None else affine(total, row)
    for k in elems:
        assert_close(found[k], [rows[i][k] for i in range(n)], EXACT)
        assert_close(jit(lambda e: lax.associative_scan(affine, e, reverse))(elems)[k], found[k], EXACT)


class Affine(NamedTuple):
    """Elements of a named type."""

    s: Any
    t: Any


def test_a_tuple_stands_for_a_named_one() -> None:
    elems = Affine(np.cos(np.arange(5.0)), np.sin(np.arange(5.0)))
    found = lax.associative_scan(lambda a, b: (a.s * b.s, a.t * b.s + b.t), elems)
    assert type(found) is Affine
    expected = lax.associative_scan(affine, elems._asdict())
    assert_close(found.t, expected["t"], EXACT)


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_along_any_axis(axis: int) -> None:
    x = np.arange(1.0, 13.0).reshape(3, 4)
    assert_close(lax.associative_scan(jnp.multiply, x, axis=axis), np.cumprod(x, axis), EXACT)
    turned = np.flip(np.cumsum(np.flip(x, axis), axis), axis)
    assert_close(lax.associative_scan(jnp.add, x, reverse=True, axis=axis), turned, EXACT)
    with xlamini.disable_jit():
        assert_close(lax.associative_scan(jnp.maximum, x, axis=axis), np.maximum.accumulate(x, axis), EXACT)


def test_matrices_and_leaves_of_several_ranks() -> None:
    m = np.random.default_rng(0).normal(size=(5, 2, 2))
    products = [m[0]]
    for k in m[1:]:
        products.append(products[-1] @ k)
    found, count = lax.associative_scan(lambda a, b: (a[0] @ b[0], a[1] + b[1]), (m, np.ones(5, np.int32)))
    assert_close(found, np.stack(products), EXACT)
    assert_close(count, np.arange(1, 6), 0)
    by_vmap = lax.associative_scan(vmap(lambda a, b: a @ b), m)
    assert_close(by_vmap, found, EXACT)


@pytest.mark.full
def test_derivatives_and_batches_of_associative_scan() -> None:
    x = np.cos(np.arange(6.0))

    def f(x: Any) -> Any:
        return (lax.associative_scan(jnp.multiply, x) ** 2).sum()

    def plain(x: Any) -> Any:
        return (jnp.cumprod(x) ** 2).sum()

    assert_close(grad(f)(x), grad(plain)(x), EXACT)
    assert_close(xlamini.hessian(f)(x), xlamini.hessian(plain)(x), EXACT)
    assert_close(vmap(grad(f))(np.stack([x, -x])), vmap(grad(plain))(np.stack([x, -x])), EXACT)
    assert_close(jvp(f, (x,), (x,))[1], jvp(plain, (x,), (x,))[1], EXACT)


def test_the_number_of_calls_is_logarithmic() -> None:
    program = make_jaxpr(lambda x: lax.associative_scan(jnp.add, x))(np.ones(1024))
    assert sum(eqn.primitive.name == "add" for eqn in program.eqns) == 19
