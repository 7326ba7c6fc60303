"""Programs with derivatives and batching of the user's own; each takes the library and returns plain data."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from .data import F, wave


def cj_log1pexp(jax: Any) -> Any:

    @jax.custom_jvp
    def f(x):
        return jax.numpy.log(1.0 + jax.numpy.exp(x))

    @f.defjvp
    def f_jvp(p, t):
        (x,) = p
        (dx,) = t
        return (f(x), (1 - 1 / (1 + jax.numpy.exp(x))) * dx)

    return (
        jax.grad(f)(100.0),
        jax.vmap(jax.jit(jax.grad(f)))(wave(3)),
        jax.grad(jax.grad(f))(0.0),
        jax.jvp(f, (1.0,), (2.0,)),
        jax.hessian(f)(1.0),
    )


def cj_nondiff(jax: Any) -> Any:

    @functools.partial(jax.custom_jvp, nondiff_argnums=(0, 2))
    def f(n, x, g):
        return g(x) ** n

    @f.defjvp
    def r(n, g, p, t):
        return (f(n, p[0], g), n * t[0])

    return (
        jax.grad(lambda x: f(3, x, jax.lax.sin))(2.0),
        jax.jit(lambda x: f(2, x, lambda y: y))(3.0),
        jax.vmap(jax.grad(lambda x: f(3, x, jax.lax.sin)))(wave(3)),
    )


def cj_kwargs(jax: Any) -> Any:

    @jax.custom_jvp
    def f(x, scale=2.0):
        return x * scale

    @f.defjvp
    def r(p, t):
        return (f(*p), p[1] * t[0] * 10)

    return (
        f(1.0),
        f(1.0, scale=3.0),
        jax.grad(f)(1.0),
        jax.grad(lambda x: f(x, scale=4.0))(1.0),
        jax.grad(lambda x: f(scale=5.0, x=x))(1.0),
    )


def cj_in_cond(jax: Any) -> Any:

    @jax.custom_jvp
    def f(x):
        return x * 2

    @f.defjvp
    def r(p, t):
        return (f(p[0]), 7 * t[0])

    def g(p, x):
        return jax.lax.cond(p, f, lambda x: x, x)

    return (
        jax.grad(g, 1)(True, 1.0),
        jax.vmap(jax.grad(g, 1))(np.array([True, False]), wave(2)),
        str(jax.make_jaxpr(g)(True, 1.0)),
    )


def cv_basic(jax: Any) -> Any:

    @jax.custom_vjp
    def f(x, y):
        return jax.lax.sin(x) * y

    f.defvjp(
        lambda x, y: (f(x, y), (jax.lax.cos(x), jax.lax.sin(x), y)), lambda r, g: (r[0] * g * r[2], r[1] * g * 100)
    )
    return (
        jax.grad(f, (0, 1))(1.0, 2.0),
        jax.vmap(jax.grad(f), (0, None))(wave(3), 2.0),
        jax.vjp(f, 1.0, 2.0)[1](3.0),
        jax.jit(jax.value_and_grad(f, 1))(1.0, 2.0),
        jax.grad(jax.grad(f, 1))(1.0, 2.0),
    )


def cv_clip(jax: Any) -> Any:

    @functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1))
    def clip(lo, hi, x):
        return x

    clip.defvjp(lambda lo, hi, x: (x, None), lambda lo, hi, res, g: (jax.numpy.clip(g, lo, hi),))

    def f(x):
        return jax.numpy.sum(clip(-0.3, 0.3, jax.lax.sin(3 * x)) ** 2 * 10)

    return (jax.grad(f)(wave(4)), jax.vmap(jax.grad(f))(wave(2, 4)), jax.jit(jax.grad(f))(wave(4)))


def cv_int_arg(jax: Any) -> Any:

    @jax.custom_vjp
    def f(x, i):
        return x[i]

    def fwd(x, i):
        return (x[i], (x.shape, i) if False else (x, i))

    def bwd(r, g):
        x, i = r
        return (jax.numpy.zeros_like(x).at[i].set(g), None)

    f.defvjp(fwd, bwd)

    def bwd2(r, g):
        x, i = r
        return (jax.numpy.zeros_like(x).at[i].set(g), np.zeros((), jax.float0))

    a = jax.grad(f)(wave(4), 2)
    f.defvjp(fwd, bwd2)
    return (a, jax.grad(f)(wave(4), 1), jax.jit(jax.grad(f))(wave(4), 0))


def cv_symzeros(jax: Any) -> Any:
    log = []

    @jax.custom_vjp
    def f(x, y):
        return x * y

    def fwd(x, y):
        log.append((bool(x.perturbed), bool(y.perturbed)))
        return (x.value * y.value, (x.value, y.value))

    def bwd(r, g):
        log.append(type(g).__name__ in ("SymbolicZero", "Zero"))
        return (g * r[1], g * r[0])

    f.defvjp(fwd, bwd, symbolic_zeros=True)
    return (jax.grad(f)(2.0, 3.0), jax.grad(f, (0, 1))(2.0, 3.0), log)


def cv_in_scan(jax: Any) -> Any:

    @jax.custom_vjp
    def f(c, x):
        return c * x

    f.defvjp(lambda c, x: (c * x, (c, x)), lambda r, g: (g * r[1], g * r[0] * 2))

    def g(xs):
        return jax.lax.scan(lambda c, x: (f(c, x), c), F(1), xs)[0]

    return (
        jax.grad(g)(wave(4)),
        jax.vmap(jax.grad(g))(wave(2, 4)),
        jax.jit(jax.grad(g))(wave(4)),
        str(jax.make_jaxpr(g)(wave(4))),
    )


def cv_scan_cond(jax: Any) -> Any:

    @jax.custom_vjp
    def f(x):
        return jax.numpy.sin(x)

    f.defvjp(lambda x: (f(x), x), lambda x, g: (jax.numpy.cos(x) * g * 2,))

    def g(xs):

        def inner(c, x):
            return (jax.lax.cond(x > 0, lambda c: f(c) + x, lambda c: c * x, c), c)

        def outer(c, x):
            return (jax.lax.scan(inner, c + x, xs)[0], c)

        return jax.lax.scan(outer, F(0.3), xs)[0]

    return (
        g(wave(4)),
        jax.grad(g)(wave(4)),
        jax.vmap(jax.grad(g))(wave(3, 4)),
        jax.jit(jax.hessian(g))(wave(3)) if False else 0,
    )


def cv_vmap_res(jax: Any) -> Any:

    @jax.custom_vjp
    def f(x, y):
        return jax.numpy.sum(x) * y

    f.defvjp(
        lambda x, y: (f(x, y), (x, y)), lambda r, g: (jax.numpy.ones_like(r[0]) * g * r[1], g * jax.numpy.sum(r[0]))
    )
    return (
        [
            jax.vmap(jax.grad(f, (0, 1)), a)(
                wave(3, 2) if a[0] is not None else wave(2), wave(3) if a[1] is not None else F(2)
            )
            for a in ((0, 0), (0, None), (None, 0))
        ],
        jax.vmap(jax.grad(f), (1, 0), 1)(wave(2, 3), wave(3)),
        jax.grad(lambda x, y: jax.numpy.sum(jax.vmap(f, (0, None))(x, y)), 1)(wave(3, 2), F(2)),
    )


def _fixed_point(jax: Any) -> Any:
    jnp = jax.numpy

    @functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
    def fixed_point(f, a, x_guess):

        def cond_fun(carry):
            xp, x = carry
            return jnp.abs(xp - x) > 1e-06

        def body_fun(carry):
            _, x = carry
            return (x, f(a, x))

        _, x_star = jax.lax.while_loop(cond_fun, body_fun, (x_guess, f(a, x_guess)))
        return x_star

    def fp_fwd(f, a, x_init):
        x_star = fixed_point(f, a, x_init)
        return (x_star, (a, x_star))

    def fp_rev(f, res, x_star_bar):
        a, x_star = res
        _, vjp_a = jax.vjp(lambda a: f(a, x_star), a)
        (a_bar,) = vjp_a(fixed_point(functools.partial(rev_iter, f), (a, x_star, x_star_bar), x_star_bar))
        return (a_bar, jnp.zeros_like(x_star))

    def rev_iter(f, packed, u):
        a, x_star, x_star_bar = packed
        _, vjp_x = jax.vjp(lambda x: f(a, x), x_star)
        return x_star_bar + vjp_x(u)[0]

    fixed_point.defvjp(fp_fwd, fp_rev)
    return fixed_point


def fixed_point_doc(jax: Any) -> Any:
    fixed_point = _fixed_point(jax)

    def newton_sqrt(a):
        def update(a, x):
            return 0.5 * (x + a / x)

        return fixed_point(update, a, a)

    return (
        newton_sqrt(2.0),
        jax.grad(newton_sqrt)(2.0),
        jax.grad(jax.grad(newton_sqrt))(2.0),
        jax.jit(jax.vmap(jax.grad(newton_sqrt)))(np.array([1.0, 2.0, 3.0], F)),
    )


def closure_conv(jax: Any) -> Any:

    def f(y):
        def g(x):
            return x * y

        c, consts = jax.closure_convert(g, 1.0)
        return (c(2.0, *consts), len(consts))

    return (jax.grad(lambda y: f(y)[0])(3.0), jax.jit(lambda y: f(y)[0])(3.0))


def croot_sqrt(jax: Any) -> Any:

    def sq(y):
        def f(x):
            return x**2 - y

        def solve(f, x0):
            return jax.lax.fori_loop(0, 20, lambda i, x: x - f(x) / jax.grad(f)(x) if False else 0.5 * (x + y / x), x0)

        def ts(g, y):
            return y / g(1.0)

        return jax.lax.custom_root(f, y, solve, ts)

    return (
        sq(3.0),
        jax.grad(sq)(3.0),
        jax.vmap(jax.grad(sq))(np.array([1.0, 4.0], F)),
        jax.jvp(sq, (3.0,), (1.0,)),
        jax.grad(jax.grad(sq))(3.0),
    )


def cls_basic(jax: Any) -> Any:
    jnp = jax.numpy
    A = wave(4, 4) @ wave(4, 4).T + 3 * np.eye(4, dtype=F)

    def cg(mv, b):

        def body(i, s):
            x, r, p = s
            Ap = mv(p)
            a = r @ r / (p @ Ap + 1e-20)
            x = x + a * p
            r2 = r - a * Ap
            return (x, r2, r2 + r2 @ r2 / (r @ r + 1e-20) * p)

        return jax.lax.fori_loop(0, 8, body, (jnp.zeros_like(b), b, b))[0]

    def solve(A, b):
        return jax.lax.custom_linear_solve(lambda x: A @ x, b, cg, symmetric=True)

    return (
        solve(A, wave(4)),
        jax.grad(lambda A, b: jnp.sum(solve(A, b) ** 2), (0, 1))(A, wave(4)),
        jax.vmap(solve, (None, 0))(A, wave(3, 4)),
        jax.jit(solve)(A, wave(4)),
    )


def cls_transpose(jax: Any) -> Any:
    D = np.array([1.0, 2.0, 4.0], F)

    def solve(d, b):
        return jax.lax.custom_linear_solve(lambda x: d * x, b, lambda mv, b: b / d, transpose_solve=lambda vm, b: b / d)

    return (
        solve(D, wave(3)),
        jax.jacrev(solve, (0, 1))(D, wave(3)),
        jax.jacfwd(solve, (0, 1))(D, wave(3)),
        jax.linear_transpose(lambda b: solve(D, b), wave(3))(wave(3)),
    )


def logsumexp_custom(jax: Any) -> Any:
    jnp = jax.numpy

    @jax.custom_jvp
    def lse(x):
        m = jnp.max(x)
        return m + jnp.log(jnp.sum(jnp.exp(x - m)))

    @lse.defjvp
    def r(p, t):
        (x,) = p
        y = lse(x)
        return (y, jnp.sum(jnp.exp(x - y) * t[0]))

    x = np.array([1000.0, 1000.0, -jnp.inf], F)
    return (
        jax.grad(lse)(x),
        jax.hessian(lse)(wave(3)),
        jax.jacfwd(jax.jacrev(lse))(wave(3)),
        jax.vmap(jax.grad(lse))(wave(2, 3)),
    )


def inv_while(jax: Any) -> Any:
    jnp = jax.numpy

    @jax.custom_jvp
    def lambertw(z):
        return jax.lax.while_loop(
            lambda s: (jnp.abs(s[1]) > 1e-06) & (s[2] < 50),
            lambda s: (
                lambda w: (
                    w - (w * jnp.exp(w) - z) / (jnp.exp(w) * (w + 1)),
                    (w * jnp.exp(w) - z) / (jnp.exp(w) * (w + 1)),
                    s[2] + 1,
                )
            )(s[0]),
            (jnp.log1p(z), jnp.ones_like(z), 0),
        )[0]

    @lambertw.defjvp
    def r(p, t):
        w = lambertw(p[0])
        return (w, t[0] / (jnp.exp(w) * (1 + w)))

    return (
        jax.grad(lambertw)(1.0),
        jax.vmap(jax.grad(lambertw))(np.array([0.5, 1.0, 2.0], F)),
        jax.grad(jax.grad(lambertw))(1.0),
    )


def closure_converted_in_own_fwd(jax: Any) -> Any:
    @functools.partial(jax.custom_vjp, nondiff_argnums=(0,))
    def called(f, x, *args):
        return f(x, *args)

    def fwd(f, x, *args):
        return called(f, x, *args), args

    called.defvjp(fwd, lambda f, args, g: (None, *(3 * g * a for a in args)))

    def solution(c):
        converted, values = jax.closure_convert(lambda x: (x - c) ** 2, 0.0)
        return called(converted, 0.0, *values)

    return solution(3.0), jax.grad(solution)(3.0), jax.jit(jax.grad(solution))(2.0)
