"""Named axes, linear maps, refs, Python control flow on values; each takes the library and returns plain data."""

from __future__ import annotations

from typing import Any

import numpy as np

from .data import F, wave


def ps_tree(jax: Any) -> Any:
    return (
        jax.vmap(lambda d: jax.lax.psum(d, "i"), axis_name="i")({"a": wave(3), "b": np.arange(6).reshape(3, 2)}),
        jax.vmap(lambda d: jax.lax.pmean(d, "i"), axis_name="i")({"a": wave(3), "b": np.arange(6).reshape(3, 2)}),
    )


def ps_two_axes(jax: Any) -> Any:
    def f(x):
        return jax.lax.psum(x, ("i", "j"))

    def g(x):
        return jax.lax.psum(x, "j") - jax.lax.pmax(x, "i")

    def v(f):
        return jax.vmap(jax.vmap(f, axis_name="j"), axis_name="i")(wave(2, 3))

    return (
        v(f),
        v(g),
        v(lambda x: jax.lax.axis_index("i") * 10 + jax.lax.axis_index("j")),
        v(lambda x: jax.lax.axis_index(("i", "j"))),
    )


def ps_scatter(jax: Any) -> Any:
    def v(f, x):
        return jax.vmap(f, axis_name="i")(x)

    return (
        v(lambda x: jax.lax.psum_scatter(x, "i"), wave(3, 3)),
        v(lambda x: jax.lax.psum_scatter(x, "i", scatter_dimension=0, tiled=True), wave(3, 6)),
        v(lambda x: jax.lax.psum_scatter(x, "i", scatter_dimension=1), wave(3, 2, 3)),
    )


def ps_grad_out(jax: Any) -> Any:
    def f(x):
        return jax.numpy.sum(jax.vmap(lambda x: x / jax.lax.psum(x**2, "i"), axis_name="i")(x))

    return (jax.grad(f)(wave(3)), jax.hessian(f)(wave(3)), jax.jit(jax.grad(f))(wave(3)))


def ps_scan(jax: Any) -> Any:
    def f(x):
        return jax.lax.scan(lambda c, y: (c + jax.lax.psum(y, "i"), c), F(0), x)

    return (jax.vmap(f, axis_name="i")(wave(3, 4)), jax.vmap(jax.grad(lambda x: f(x)[0]), axis_name="i")(wave(3, 4)))


def ps_while(jax: Any) -> Any:
    def f(x):
        return jax.lax.while_loop(lambda c: jax.lax.psum(c, "i") < 20, lambda c: c * 2 + 1, x)

    return jax.vmap(f, axis_name="i")(abs(wave(3)))


def lt_basic(jax: Any) -> Any:
    def f(x):
        return 3 * x + x[::-1]

    return (
        jax.linear_transpose(f, wave(3))(wave(3)),
        jax.linear_transpose(lambda x, y: x * 2 + y, 1.0, 1.0)(1.0),
        jax.linear_transpose(lambda d: d["a"] - d["b"], {"a": 1.0, "b": 2.0})(3.0),
        jax.jit(jax.linear_transpose(lambda x: wave(2, 3) @ x, jax.ShapeDtypeStruct((3,), F)))(wave(2)),
    )


def lt_scan(jax: Any) -> Any:
    def f(x):
        return jax.lax.scan(lambda c, y: (c * 0.5 + y, c), x[0], x)[1]

    return (
        jax.linear_transpose(f, wave(4))(wave(4)),
        jax.linear_transpose(lambda x: jax.lax.cond(True, lambda x: x * 2, lambda x: x, x), 1.0)(1.0),
        jax.linear_transpose(lambda x: jax.lax.fori_loop(0, 3, lambda i, c: c * 2, x), 1.0)(1.0),
    )


def jv_of_vj(jax: Any) -> Any:
    def f(x):
        return jax.numpy.sum(jax.numpy.sin(x) * x)

    v = wave(3)
    hvp1 = jax.jvp(jax.grad(f), (wave(3),), (v,))[1]
    hvp2 = jax.grad(lambda x: jax.numpy.vdot(jax.grad(f)(x), v))(wave(3))
    hvp3 = jax.vjp(jax.grad(f), wave(3))[1](v)[0]
    hvp4 = jax.linearize(jax.grad(f), wave(3))[1](v)
    hvp5 = jax.grad(lambda x: jax.jvp(f, (x,), (v,))[1])(wave(3))
    return (hvp1, hvp2, hvp3, hvp4, hvp5)


def jac_tree(jax: Any) -> Any:
    def f(d):
        return (d["a"] @ d["b"], {"k": d["a"].sum(0)})

    d = {"a": wave(2, 3), "b": wave(3)}
    return (jax.jacfwd(f)(d), jax.jacrev(f)(d), jax.hessian(lambda d: jax.numpy.sum(f(d)[0] ** 2))(d))


def cplx_scan(jax: Any) -> Any:
    def f(z):
        return jax.lax.scan(lambda c, _: (c * c + z, jax.numpy.abs(c)), z * 0, None, length=3)

    return (
        f(np.complex64(0.1 + 0.2j)),
        jax.grad(lambda z: jax.numpy.sum(f(z)[1]))(np.complex64(0.1 + 0.2j)),
        jax.grad(lambda z: f(z)[0], holomorphic=True)(np.complex64(0.1 + 0.2j)),
    )


def x64_jac(jax: Any) -> Any:
    with jax.enable_x64(True):
        return (
            jax.hessian(lambda x: jax.numpy.prod(jax.numpy.sin(x)))(np.arange(1.0, 4.0)),
            jax.jacfwd(jax.jacfwd(jax.jacrev(lambda x: jax.numpy.sum(x**4))))(np.arange(2.0) + 1),
        )


def py_if_grad(jax: Any) -> Any:

    def f(x):
        if x > 2:
            return 3 * x**2
        elif x > 0:
            return 0.1 * x**3
        return -4 * x

    return (
        [jax.grad(f)(v) for v in (3.0, 1.0, -1.0)],
        [jax.grad(jax.grad(f))(v) for v in (3.0, 1.0)],
        jax.value_and_grad(f)(3.0),
    )


def py_while_grad(jax: Any) -> Any:

    def f(x):
        y = x
        n = 0
        while y < 100:
            y = y * x
            n += 1
        return y * n

    return (jax.grad(f)(3.0), jax.grad(jax.grad(f))(3.0), jax.jvp(f, (3.0,), (1.0,)), jax.jacrev(f)(3.0))


def ref_scan(jax: Any) -> Any:

    @jax.jit
    def f(xs):
        r = jax.new_ref(jax.numpy.zeros(()))

        def body(c, x):
            r[...] += x
            return (c, r[...])

        _, ys = jax.lax.scan(body, 0, xs)
        return (r[...], ys)

    return (f(wave(4)), jax.grad(lambda x: f(x)[0])(wave(4)))


def ref_cond(jax: Any) -> Any:
    r = jax.new_ref(jax.numpy.zeros(()))

    @jax.jit
    def f(p):

        def t():
            r[...] = 1.0

        def e():
            r[...] = 2.0

        jax.lax.cond(p, t, e)

    f(True)
    a = r[...]
    f(False)
    return (a, r[...])
