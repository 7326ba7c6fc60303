"""Programs with checkpoints and host callbacks; each takes the library and returns plain data."""

from __future__ import annotations

from typing import Any

import numpy as np

from .data import F, wave


def ck_scan_policy(jax: Any) -> Any:
    body = jax.checkpoint(
        lambda h, w: (jax.numpy.tanh(w @ jax.numpy.sin(h)), None),
        policy=jax.checkpoint_policies.dots_with_no_batch_dims_saveable,
        prevent_cse=False,
    )

    def f(h, ws):
        return jax.numpy.sum(jax.lax.scan(body, h, ws)[0])

    return (jax.grad(f, (0, 1))(wave(3), wave(4, 3, 3)), jax.hessian(f)(wave(3), wave(4, 3, 3)))


def ck_rng(jax: Any) -> Any:
    k = jax.random.key(0)
    f = jax.checkpoint(lambda x, k: jax.numpy.sum(jax.lax.sin(x) * jax.random.normal(k, (3,))))
    return (jax.grad(f)(wave(3), k), jax.vmap(jax.grad(f), (None, 0))(wave(3), jax.random.split(k, 2)))


def ck_closure(jax: Any) -> Any:

    def f(y):
        z = y * 2
        return jax.checkpoint(lambda x: jax.lax.sin(x * z))(y)

    return (jax.grad(f)(1.0), jax.jit(jax.grad(jax.grad(f)))(1.0))


def pc_vmap_expand(jax: Any) -> Any:
    log = []

    def host(x, y):
        log.append((np.shape(x), np.shape(y)))
        return np.asarray(x) + np.asarray(y)

    out = []
    for m in ("expand_dims", "broadcast_all", "sequential"):

        def f(x, y, m=m):
            return jax.pure_callback(host, jax.ShapeDtypeStruct((), F), x, y, vmap_method=m)

        out.append(jax.vmap(f, (0, None))(wave(3), F(1)))
    return (out, log)


def pc_custom_jvp(jax: Any) -> Any:

    @jax.custom_jvp
    def s(x):
        return jax.pure_callback(
            lambda x: np.sin(x).astype(F), jax.ShapeDtypeStruct(x.shape, x.dtype), x, vmap_method="expand_dims"
        )

    s.defjvps(lambda t, ans, x: jax.numpy.cos(x) * t)
    return (
        jax.grad(lambda x: s(x).sum())(jax.numpy.ones(3)),
        jax.vmap(jax.grad(lambda x: s(x)))(jax.numpy.ones(3)),
        jax.jit(jax.hessian(s))(jax.numpy.float32(1)),
    )


def io_ordered(jax: Any) -> Any:
    log = []
    io = jax.experimental.io_callback

    def host(i):
        log.append(int(i))

    def f(n):

        def body(i, c):
            io(host, None, i, ordered=True)
            return c + i

        return jax.lax.fori_loop(0, n, body, 0)

    r = jax.jit(f)(5)
    jax.effects_barrier()
    return (r, log)


def io_scan_cond(jax: Any) -> Any:
    log = []
    io = jax.experimental.io_callback

    def f(xs):

        def body(c, x):
            jax.lax.cond(
                x > 0, lambda: io(lambda v: log.append(round(float(v), 3)), None, x, ordered=True), lambda: None
            )
            return (c, x)

        return jax.lax.scan(body, 0, xs)

    jax.jit(f)(wave(6))
    jax.effects_barrier()
    return log


def dp_formats(jax: Any) -> Any:

    @jax.jit
    def f(x):
        jax.debug.print("{0} {1:>8.2f} {{esc}} {x!r}", x, x * 2, x=x, ordered=True)
        return x

    f(1.25)


def dp_scan(jax: Any) -> Any:

    def body(c, x):
        jax.debug.print("c={c} x={x}", c=c, x=x, ordered=True)
        return (c + x, c)

    jax.jit(lambda xs: jax.lax.scan(body, 0, xs))(np.arange(3))
    jax.effects_barrier()
    jax.lax.scan(body, 0, np.arange(2))


def dp_grad(jax: Any) -> Any:

    def f(x):
        jax.debug.print("p {}", x)
        return x**2

    jax.grad(f)(3.0)
    jax.effects_barrier()
    jax.jit(jax.grad(f))(4.0)
    jax.effects_barrier()
    jax.value_and_grad(f)(2.0)


def dp_cond(jax: Any) -> Any:
    def f(p, x):
        return jax.lax.cond(
            p, lambda x: (jax.debug.print("T {}", x), x)[1], lambda x: (jax.debug.print("F {}", x), -x)[1], x
        )

    f(True, 1.0)
    jax.effects_barrier()
    jax.jit(f)(False, 2.0)
    jax.effects_barrier()
    jax.grad(f, 1)(True, 3.0)


def dp_custom_vjp(jax: Any) -> Any:

    @jax.custom_vjp
    def f(x):
        return x

    def bwd(_, g):
        jax.debug.print("g={}", g)
        return (g,)

    f.defvjp(lambda x: (x, None), bwd)
    jax.grad(lambda x: f(x) * 3)(1.0)
    jax.effects_barrier()
    jax.jit(jax.grad(lambda x: f(x**2)))(2.0)


def cb_jit_inside(jax: Any) -> Any:
    g = jax.jit(lambda x: jax.lax.sin(x))

    def host(x):
        return np.asarray(g(np.asarray(x)))

    return (
        jax.jit(lambda x: jax.pure_callback(host, jax.ShapeDtypeStruct((3,), F), x))(wave(3)),
        jax.pure_callback(host, jax.ShapeDtypeStruct((3,), F), wave(3)),
    )
