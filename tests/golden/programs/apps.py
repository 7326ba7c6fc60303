"""Models and algorithms as users write them; each takes the library and returns plain data."""

from __future__ import annotations

import collections
import dataclasses
from typing import Any

import numpy as np

from .data import F, wave


def maml_scan_inner(jax: Any) -> Any:
    jnp = jax.numpy

    def loss(w, x):
        return jnp.sum(jnp.sin(w * x) ** 2)

    def inner(w, x):
        return jax.lax.scan(lambda w, _: (w - 0.05 * jax.grad(loss)(w, x), loss(w, x)), w, None, length=5)

    def outer(w):
        return jnp.mean(jax.vmap(lambda x: loss(inner(w, x)[0], x + 0.1))(wave(4)))

    return (jax.grad(outer)(0.7), jax.grad(jax.grad(outer))(0.7), jax.jit(jax.grad(outer))(0.7))


def adam_scan(jax: Any) -> Any:
    jnp = jax.numpy
    S = collections.namedtuple("S", "m v t")

    def low(p):
        return jnp.sum((p["a"] - 1.0) ** 2) + jnp.sum(jnp.sin(p["b"]))

    def step(c, _):
        p, s = c
        v, g = jax.value_and_grad(low)(p)
        t = s.t + 1
        m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, s.m, g)
        vv = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g * g, s.v, g)
        p = jax.tree.map(
            lambda p, m, v: p - 0.1 * (m / (1 - 0.9**t)) / (jnp.sqrt(v / (1 - 0.999**t)) + 1e-08), p, m, vv
        )
        return ((p, S(m, vv, t)), v)

    p = {"a": jnp.asarray(wave(2)), "b": jnp.asarray(wave(3))}
    z = jax.tree.map(jnp.zeros_like, p)
    return jax.jit(lambda p: jax.lax.scan(step, (p, S(z, z, 0)), None, length=20))(p)


def beam_search(jax: Any) -> Any:
    jnp = jax.numpy
    V = 5
    B = 3
    T = 4
    logits = jax.nn.log_softmax(jnp.asarray(wave(V, V) * 3))

    def step(c, _):
        seqs, scores, t = c
        last = seqs[:, t]
        s = scores[:, None] + logits[last]
        top, idx = jax.lax.top_k(s.ravel(), B)
        b = idx // V
        tok = idx % V
        seqs = seqs[b].at[:, t + 1].set(tok)
        return ((seqs, top, t + 1), (b, tok))

    init = (jnp.zeros((B, T + 1), int), jnp.array([0.0, -1000000000.0, -1000000000.0]), 0)
    return jax.lax.scan(step, init, None, length=T)


def viterbi(jax: Any) -> Any:
    jnp = jax.numpy
    A = wave(3, 3)
    E = wave(6, 3)

    def f(c, e):
        s = c[:, None] + A
        return (s.max(0) + e, s.argmax(0))

    def dec(E):
        c, bp = jax.lax.scan(f, jnp.zeros(3), E)
        last = c.argmax()
        return jax.lax.scan(lambda s, b: (b[s], s), last, bp, reverse=True)

    return (dec(E), jax.vmap(dec)(np.stack([E, -E])))


def hmm_forward(jax: Any) -> Any:
    jnp = jax.numpy

    def ll(A, E):

        def f(c, e):
            return (jax.nn.logsumexp(c[:, None] + A, axis=0) + e, None)

        return jax.nn.logsumexp(jax.lax.scan(f, jnp.zeros(3), E)[0])

    return (
        ll(wave(3, 3), wave(6, 3)),
        jax.grad(ll, (0, 1))(wave(3, 3), wave(6, 3)),
        jax.hessian(ll)(wave(3, 3), wave(6, 3)),
    )


def hmc(jax: Any) -> Any:
    jnp = jax.numpy

    def U(q):
        return jnp.sum(q**4 / 4)

    def leap(q, p):

        def b(i, c):
            q, p = c
            p = p - 0.05 * jax.grad(U)(q)
            q = q + 0.1 * p
            return (q, p - 0.05 * jax.grad(U)(q))

        return jax.lax.fori_loop(0, 5, b, (q, p))

    def step(q, k):
        k1, k2 = jax.random.split(k)
        p = jax.random.normal(k1, q.shape)
        q2, p2 = leap(q, p)
        dH = U(q) - U(q2) + 0.5 * (p @ p - p2 @ p2)
        q = jax.lax.cond(jax.random.uniform(k2) < jnp.exp(dH), lambda: q2, lambda: q)
        return (q, q)

    return jax.jit(lambda k: jax.lax.scan(step, jnp.asarray(wave(2)), jax.random.split(k, 10)))(jax.random.key(2))


def rej_sampling(jax: Any) -> Any:

    def f(k):
        return jax.lax.while_loop(
            lambda c: c[1] < 1.0,
            lambda c: (lambda k: (k[0], jax.random.normal(k[1])))(jax.random.split(c[0])),
            (k, 0.0),
        )[1]

    return (f(jax.random.key(3)), jax.vmap(f)(jax.random.split(jax.random.key(4), 4)))


def kalman(jax: Any) -> Any:
    jnp = jax.numpy
    A = np.array([[1, 0.1], [0, 1]], F)
    H = np.array([[1.0, 0]], F)

    def ll(q, ys):

        def s(c, y):
            m, P = c
            m = A @ m
            P = A @ P @ A.T + q * jnp.eye(2)
            S = (H @ P @ H.T)[0, 0] + 0.1
            K = (P @ H.T)[:, 0] / S
            r = y - (H @ m)[0]
            return ((m + K * r, P - jnp.outer(K, H @ P)), -0.5 * (r * r / S + jnp.log(S)))

        return jax.lax.scan(s, (jnp.zeros(2), jnp.eye(2)), ys)[1].sum()

    return (jax.value_and_grad(ll)(0.1, wave(8)), jax.hessian(ll)(0.1, wave(8)))


def moe_switch(jax: Any) -> Any:
    jnp = jax.numpy

    def f(W, x):
        e = jnp.argmax(x[:3])
        return jax.lax.switch(e, [lambda x: W[0] @ x, lambda x: jnp.tanh(W[1] @ x), lambda x: W[2] @ x * 2], x)

    return (
        jax.vmap(f, (None, 0))(wave(3, 4, 4), wave(5, 4)),
        jax.grad(lambda W: jnp.sum(jax.vmap(f, (None, 0))(W, wave(5, 4)) ** 2))(wave(3, 4, 4)),
    )


def dataclass_state(jax: Any) -> Any:

    @jax.tree_util.register_dataclass
    @dataclasses.dataclass
    class S:
        w: Any
        n: Any
        name: str = dataclasses.field(metadata={"static": True}, default="q")

    step = jax.jit(lambda s, x: S(s.w - 0.1 * jax.grad(lambda w: jax.numpy.sum((w * x) ** 2))(s.w), s.n + 1, s.name))
    s = S(jax.numpy.asarray(wave(3)), 0)
    s = step(s, 2.0)
    s, ys = jax.lax.scan(lambda s, x: (step(s, x), s.n), s, wave(3))
    return ((s.w, s.n, s.name, ys), jax.grad(lambda s: jax.numpy.sum(s.w))(S(wave(2), F(1))).w)


def pytree_node_cls(jax: Any) -> Any:

    @jax.tree_util.register_pytree_node_class
    class P:
        def __init__(s, a, b):
            s.a = a
            s.b = b

        def tree_flatten(s):
            return ((s.a, s.b), None)

        @classmethod
        def tree_unflatten(c, aux, ch):
            return c(*ch)

    def f(p):
        return jax.lax.while_loop(lambda p: p.a < 3, lambda p: P(p.a + 1, p.b * 2.0), p)

    r = f(P(0, 1.0))
    c = jax.lax.cond(True, lambda p: P(p.b, p.a), lambda p: p, P(1.0, 2.0))
    v = jax.vmap(f)(P(np.arange(3), wave(3)))
    return (r.a, r.b, c.a, c.b, v.b)


def einsum_scan_attn(jax: Any) -> Any:
    jnp = jax.numpy

    def fl(q, k, v):

        def s(c, kv):
            m, low, o = c
            k, v = kv
            s = q @ k.T
            m2 = jnp.maximum(m, s.max(-1))
            p = jnp.exp(s - m2[:, None])
            a = jnp.exp(m - m2)
            return ((m2, low * a + p.sum(-1), o * a[:, None] + p @ v), None)

        (_m, low, o), _ = jax.lax.scan(
            s, (jnp.full(4, -jnp.inf), jnp.zeros(4), jnp.zeros((4, 3))), (k.reshape(2, 3, 3), v.reshape(2, 3, 3))
        )
        return o / low[:, None]

    return (
        fl(wave(4, 3), wave(6, 3), wave(6, 3)),
        jax.grad(lambda *a: jnp.sum(fl(*a) ** 2), (0, 1, 2))(wave(4, 3), wave(6, 3), wave(6, 3)),
    )


def string_dist_dp(jax: Any) -> Any:
    jnp = jax.numpy

    def d(a, b):

        def row(p, ai):

            def col(low, t):
                pj, pj1, bj = t
                v = jnp.minimum(jnp.minimum(low + 1, pj1 + 1), pj + (ai != bj))
                return (v, v)

            f = p[0] + 1
            _, r = jax.lax.scan(col, f, (p[:-1], p[1:], b))
            return (jnp.concatenate([f[None], r]), None)

        return jax.lax.scan(row, jnp.arange(b.shape[0] + 1), a)[0][-1]

    return (
        d(np.array([1, 2, 3, 4]), np.array([2, 3, 5, 4, 1])),
        jax.vmap(d, (0, None))(np.array([[1, 2], [3, 4]]), np.array([1, 3])),
    )


def cond_in_vmap_in_scan_in_grad(jax: Any) -> Any:
    jnp = jax.numpy

    def f(w, xs):

        def s(c, x):
            c = jax.vmap(lambda c, x: jax.lax.cond(c * x > 0, lambda: jnp.sin(c * w) + x, lambda: c - x * w))(c, x)
            return (c, c.sum())

        return jax.lax.scan(s, jnp.ones(3), xs)[1].sum()

    return (jax.grad(f, (0, 1))(0.5, wave(4, 3)), jax.jit(jax.hessian(f))(0.5, wave(4, 3)))


def s4_complex(jax: Any) -> Any:
    jnp = jax.numpy
    lam = np.array([-0.5 + 1j, -0.2 - 2j], np.complex64)

    def f(lr, x):
        return jax.lax.scan(
            lambda h, v: (lambda n: (n, n.sum().real))(jnp.exp(lr) * h + v), jnp.zeros(2, jnp.complex64), x
        )[1]

    return (f(lam, wave(5)), jax.grad(lambda low: jnp.sum(f(low, wave(5)) ** 2))(lam), jax.jacrev(f, 1)(lam, wave(5)))


def scan_over_pytrees_of_keys(jax: Any) -> Any:
    ks = {"a": jax.random.split(jax.random.key(0), 3), "b": np.arange(3)}
    return jax.lax.scan(lambda c, d: (c + 1, (jax.random.normal(jax.random.fold_in(d["a"], d["b"])), d["a"])), 0, ks)
