"""Programs of control flow; each takes the library and returns plain data."""

from __future__ import annotations

import collections
from typing import Any

import numpy as np

from .data import F, wave


def cond_basic(jax: Any) -> Any:
    def f(p, x):
        return jax.lax.cond(p, lambda x: jax.lax.sin(x), lambda x: jax.lax.cos(x), x)

    return (f(True, 1.0), f(False, 1.0), jax.jit(f)(True, 2.0), str(jax.make_jaxpr(f)(True, 1.0)))


def cond_pytree(jax: Any) -> Any:
    NT = collections.namedtuple("NT", "a b")

    def f(p, d):
        return jax.lax.cond(
            p, lambda d: {"u": NT(d["x"], d["y"] + 1), "v": None}, lambda d: {"u": NT(d["y"], d["x"] * 2), "v": None}, d
        )

    d = {"x": wave(3), "y": wave(3) * 2}
    return (f(True, d), jax.jit(f)(False, d), jax.vmap(f, in_axes=(0, None))(np.array([True, False]), d))


def cond_vmap_pred(jax: Any) -> Any:
    def f(p, x):
        return jax.lax.cond(p, jax.lax.sin, lambda x: x * x, x)

    p = np.array([True, False, True])
    x = wave(3)
    return (
        jax.vmap(f)(p, x),
        jax.vmap(f, in_axes=(None, 0))(True, x),
        jax.vmap(f, in_axes=(0, None))(p, F(2)),
        jax.vmap(jax.grad(f, 1))(p, x),
        str(jax.make_jaxpr(jax.vmap(f, in_axes=(None, 0)))(True, x)),
    )


def switch_basic(jax: Any) -> Any:
    br = [lambda x: x, lambda x: x * 2, lambda x: jax.lax.exp(x)]

    def f(i, x):
        return jax.lax.switch(i, br, x)

    return (
        [f(i, F(1.5)) for i in (-3, 0, 1, 2, 9)],
        str(jax.make_jaxpr(f)(1, 1.0)),
        jax.vmap(f)(np.arange(5) - 1, wave(5)),
        jax.grad(f, 1)(2, 1.0),
    )


def cond_grad_of_grad(jax: Any) -> Any:
    def f(x):
        return jax.lax.cond(x > 0, lambda x: x**3, lambda x: jax.lax.sin(x), x)

    return (
        [jax.grad(f)(v) for v in (1.0, -1.0)],
        [jax.grad(jax.grad(f))(v) for v in (1.0, -1.0)],
        [jax.grad(jax.grad(jax.grad(f)))(v) for v in (1.0, -1.0)],
        jax.jit(jax.hessian(f))(-2.0),
    )


def while_consts(jax: Any) -> Any:

    def f(x, n):
        return jax.lax.while_loop(lambda c: jax.numpy.sum(c) < n, lambda c: c + x, x)

    return (
        f(wave(3) ** 2, 20.0),
        jax.vmap(f, (0, None))(wave(2, 3) ** 2, 5.0),
        jax.vmap(f, (None, 0))(wave(3) ** 2, np.array([3.0, 9.0], F)),
        jax.jvp(lambda x: f(x, 20.0), (wave(3) ** 2,), (wave(3),)),
    )


def while_gcd(jax: Any) -> Any:

    def gcd(a, b):
        return jax.lax.while_loop(lambda c: c[1] != 0, lambda c: (c[1], jax.lax.rem(c[0], c[1])), (a, b))[0]

    return (
        gcd(48, 18),
        jax.vmap(gcd)(np.array([12, 100, 7]), np.array([18, 75, 21])),
        jax.jit(gcd)(np.int32(270), np.int32(192)),
    )


def while_jvp(jax: Any) -> Any:

    def f(x):
        return jax.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * x), (0, x))[1]

    return (
        jax.jvp(f, (2.0,), (1.0,)),
        jax.jacfwd(f)(3.0),
        jax.jacfwd(jax.jacfwd(f))(3.0),
        jax.vmap(jax.jacfwd(f))(wave(3)),
    )


def fori_static(jax: Any) -> Any:
    def f(x):
        return jax.lax.fori_loop(0, 4, lambda i, c: c * x + i, x)

    return (
        f(2.0),
        jax.grad(f)(2.0),
        str(jax.make_jaxpr(f)(2.0)),
        jax.grad(jax.grad(f))(2.0),
        jax.jit(jax.vmap(jax.grad(f)))(wave(4)),
    )


def fori_pytree(jax: Any) -> Any:
    def f(d):
        return jax.lax.fori_loop(1, 6, lambda i, c: {"a": c["b"], "b": c["a"] + c["b"] * i}, d)

    return (f({"a": 0, "b": 1}), f({"a": wave(2), "b": wave(2)}), str(jax.make_jaxpr(f)({"a": 0, "b": 1})))


def scan_pytree(jax: Any) -> Any:

    def body(c, x):
        c = {"s": c["s"] + x[0], "n": c["n"] + 1}
        return (c, {"m": c["s"] / c["n"], "y": (x[1],)})

    def f(xs):
        return jax.lax.scan(body, {"s": F(0), "n": 0}, xs)

    return (f((wave(4), np.arange(4))), str(jax.make_jaxpr(f)((wave(4), np.arange(4)))))


def scan_key_carry(jax: Any) -> Any:

    def body(k, _):
        k, s = jax.random.split(k)
        return (k, jax.random.normal(s, (2,)))

    return (
        jax.lax.scan(body, jax.random.key(0), None, length=3),
        jax.jit(lambda k: jax.lax.scan(body, k, None, length=3))(jax.random.PRNGKey(3)),
        jax.vmap(lambda k: jax.lax.scan(body, k, None, length=2))(jax.random.split(jax.random.key(1), 3)),
    )


def scan_matrix(jax: Any) -> Any:
    W = wave(4, 4) * 0.5

    def f(W, h, xs):
        return jax.lax.scan(lambda h, x: (jax.numpy.tanh(W @ h + x),) * 2, h, xs)

    def low(W, h, xs):
        return jax.numpy.sum(f(W, h, xs)[1] ** 2)

    return (
        f(W, wave(4), wave(5, 4)),
        jax.grad(low, (0, 1, 2))(W, wave(4), wave(5, 4)),
        jax.vmap(jax.grad(low), (None, 0, None))(W, wave(3, 4), wave(5, 4)),
        jax.hessian(low, 1)(W, wave(4), wave(5, 4)),
    )


def scan_of_scan(jax: Any) -> Any:

    def f(x):

        def outer(c, y):
            c2, ys = jax.lax.scan(lambda d, z: (d * z + y, d), c, x)
            return (c2, ys)

        return jax.lax.scan(outer, F(1), x)

    return (f(wave(3)), jax.grad(lambda x: jax.numpy.sum(f(x)[1]))(wave(3)), str(jax.make_jaxpr(f)(wave(3))))


def scan_while(jax: Any) -> Any:

    def body(c, n):
        return (jax.lax.while_loop(lambda v: v[0] < n, lambda v: (v[0] + 1, v[1] * 1.5), (0, c))[1], c)

    def f(c, ns):
        return jax.lax.scan(body, c, ns)

    ns = np.array([1, 3, 0, 2])
    return (
        f(1.0, ns),
        jax.jvp(lambda c: f(c, ns), (1.0,), (1.0,)),
        jax.vmap(f, (0, None))(wave(2), ns),
        jax.vmap(f, (None, 0))(1.0, np.stack([ns, ns + 1])),
    )


def map_tuple(jax: Any) -> Any:
    return (
        jax.lax.map(lambda ab: ab[0] @ ab[1], (wave(4, 3), wave(4, 3))),
        jax.lax.map(lambda ab: ab[0] @ ab[1], (wave(4, 3), wave(4, 3)), batch_size=3),
    )


def collatz(jax: Any) -> Any:

    def steps(n):
        return jax.lax.while_loop(
            lambda c: c[0] != 1,
            lambda c: (jax.lax.cond(c[0] % 2 == 0, lambda n: n // 2, lambda n: 3 * n + 1, c[0]), c[1] + 1),
            (n, 0),
        )[1]

    return (steps(27), jax.vmap(steps)(np.arange(1, 10)), jax.jit(steps)(7))


def scan_inplace_update(jax: Any) -> Any:

    def f(x):

        def body(buf, i):
            return (buf.at[i].set(buf[i - 1] * x + 1), buf[i])

        return jax.lax.scan(body, jax.numpy.zeros(5), np.arange(5))

    return (f(2.0), jax.jacfwd(f)(2.0), jax.jacrev(f)(2.0))


def bubble_sort(jax: Any) -> Any:

    def f(x):
        n = x.shape[0]

        def inner(j, x):
            a, b = (x[j], x[j + 1])
            return x.at[j].set(jax.numpy.minimum(a, b)).at[j + 1].set(jax.numpy.maximum(a, b))

        return jax.lax.fori_loop(0, n, lambda i, x: jax.lax.fori_loop(0, n - 1 - i, inner, x), x)

    return (f(wave(6)), jax.jit(jax.vmap(f))(wave(2, 6)))


def while_cond_consts_batched(jax: Any) -> Any:
    def f(t, x):
        return jax.lax.while_loop(lambda c: jax.numpy.max(c) < t, lambda c: c * 2 + 0.1, x)

    return (
        jax.vmap(f)(np.array([1.0, 5.0], F), abs(wave(2, 3))),
        jax.vmap(f, (0, None))(np.array([1.0, 5.0], F), abs(wave(3))),
    )


def vmap_of_while_of_cond(jax: Any) -> Any:

    def f(x, k):

        def body(c):
            i, v = c
            return (i + 1, jax.lax.switch(jax.lax.rem(i, 3), [lambda v: v + 1, lambda v: v * k, jax.lax.sin], v))

        return jax.lax.while_loop(lambda c: c[0] < 5, body, (0, x))[1]

    return (
        jax.vmap(f, (0, None))(wave(3), 2.0),
        jax.vmap(jax.vmap(f, (0, None)), (None, 0))(wave(3), wave(2)),
        jax.jacfwd(f)(1.0, 2.0),
    )
