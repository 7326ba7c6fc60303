"""Everything that takes a function, twice: by xlamini, and in plain Python.

A `Wrap` makes a function of an array (a vector of SIZE numbers to one of the same size) from another one. Wrapped
around each other in all ways they are programs that nest control flow, custom rules, recomputation and mapping; `plain`
gives the same numbers with Python's own loops and branches.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import xlamini
from xlamini import lax, numpy as jnp
from xlamini.custom_batching import custom_vmap
from xlamini.experimental import pallas as pl
from xlamini.experimental.xla_metadata import xla_metadata_call
from xlamini.ref import new_ref

SIZE = 2
Function = Callable[[Any], Any]


class Wrap(NamedTuple):
    """One way to run a function, and the same in plain Python; `reverse` says whether reverse mode goes through."""

    traced: Callable[[Function], Function]
    plain: Callable[[Function], Function]
    reverse: bool = True


def base(x: Any) -> Any:
    """A smooth function for xlamini's arrays and NumPy's."""
    sin = np.sin if isinstance(x, np.ndarray) else jnp.sin
    return sin(x) * 1.3 + x[::-1] * 0.5


def cond(f: Function) -> Function:
    return lambda x: lax.cond(x[0] > 0.2, f, lambda x: x * x, x)


def cond_plain(f: Function) -> Function:
    return lambda x: f(x) if x[0] > 0.2 else x * x


def switch(f: Function) -> Function:
    def chosen(x: Any) -> Any:
        index = (x[0] > 0.2).astype("int32") + 1
        return lax.switch(index, [lambda: -x, lambda: f(x) * 2, lambda: f(x + 0.1)])

    return chosen


def switch_plain(f: Function) -> Function:
    return lambda x: f(x + 0.1) if x[0] > 0.2 else f(x) * 2


def scan(f: Function) -> Function:
    def scanned(x: Any) -> Any:
        def body(carry: Any, row: Any) -> Any:
            new = f(carry) * 0.5 + row * x
            return new, new * row

        carry, ys = lax.scan(body, x, 0.4 * jnp.stack([x, jnp.ones(SIZE, x.dtype), 2 * x]))
        return carry + ys.sum(0)

    return scanned


def scan_plain(f: Function) -> Function:
    def scanned(x: Any) -> Any:
        carry, total = x, 0 * x
        for row in (0.4 * x, 0.4 * np.ones(SIZE), 0.8 * x):
            carry = f(carry) * 0.5 + row * x
            total = total + carry * row
        return carry + total

    return scanned


def scan_back(f: Function) -> Function:
    def scanned(x: Any) -> Any:
        def body(carry: Any, i: Any) -> Any:
            return (carry[0] + 1, f(carry[1]) * (1.0 + 0.1 * i)), None

        (_, last), _ = lax.scan(body, (0, x), jnp.arange(3), reverse=True, unroll=2)
        return last

    return scanned


def scan_back_plain(f: Function) -> Function:
    def scanned(x: Any) -> Any:
        for i in (2, 1, 0):
            x = f(x) * (1.0 + 0.1 * i)
        return x

    return scanned


def fori(f: Function) -> Function:
    return lambda x: lax.fori_loop(0, 2, lambda i, c: f(c) * 0.8 + i * x, x)


def fori_plain(f: Function) -> Function:
    def looped(x: Any) -> Any:
        c = x
        for i in range(2):
            c = f(c) * 0.8 + i * x
        return c

    return looped


def while_of(**options: Any) -> Callable[[Function], Function]:
    def wrap(f: Function) -> Function:
        def looped(x: Any) -> Any:
            def body(state: Any) -> Any:
                i, c = state
                return i + 1, f(c) * 0.7 + x

            def holds(state: Any) -> Any:
                return (state[0] < 3) & (state[1][0] < 1.5)

            return lax.while_loop(holds, body, (0, x), **options)[1]

        return looped

    return wrap


def while_plain(f: Function) -> Function:
    def looped(x: Any) -> Any:
        i, c = 0, x
        while i < 3 and c[0] < 1.5:
            i, c = i + 1, f(c) * 0.7 + x
        return c

    return looped


def mapped(f: Function) -> Function:
    return lambda x: lax.map(f, jnp.stack([x, x * 0.5, -x]), batch_size=2).sum(0)


def vmapped(f: Function) -> Function:
    return lambda x: xlamini.vmap(f)(jnp.stack([x, x * 0.5, -x])).sum(0)


def mapped_plain(f: Function) -> Function:
    return lambda x: f(x) + f(x * 0.5) + f(-x)


def with_collective(f: Function) -> Function:
    def one(row: Any) -> Any:
        return f(row) * lax.psum(row[0], "rows") + lax.all_gather(row, "rows")[0]

    return lambda x: xlamini.vmap(one, axis_name="rows")(jnp.stack([x, x * 0.5])).sum(0)


def with_collective_plain(f: Function) -> Function:
    return lambda x: (f(x) + f(x * 0.5)) * 1.5 * x[0] + 2 * x


def custom_jvp(f: Function) -> Function:
    @xlamini.custom_jvp
    def g(x: Any) -> Any:
        return f(x) * x

    @g.defjvp
    def g_jvp(primals: Any, tangents: Any) -> Any:
        (x,), (t,) = primals, tangents
        out, out_t = xlamini.jvp(f, (x,), (t,))
        return out * x, out_t * x + out * t

    return g


def custom_vjp(f: Function) -> Function:
    @xlamini.custom_vjp
    def g(x: Any) -> Any:
        return f(x) * x

    def forward(x: Any) -> Any:
        out, pullback = xlamini.vjp(f, x)
        return out * x, (pullback, out, x)

    def backward(residuals: Any, ct: Any) -> Any:
        pullback, out, x = residuals
        return (pullback(ct * x)[0] + ct * out,)

    g.defvjp(forward, backward)
    return g


def times_x(f: Function) -> Function:
    return lambda x: f(x) * x


def doubled_vmap(f: Function) -> Function:
    @custom_vmap
    def g(x: Any) -> Any:
        return f(x) * 2

    @g.def_vmap
    def rule(axis_size: int, in_batched: Any, x: Any) -> Any:
        return xlamini.vmap(f)(x) * 2, True

    return g


def with_ref(f: Function) -> Function:
    def written(x: Any) -> Any:
        r = new_ref(x)
        for _ in range(2):
            r[...] = f(r[...])
            r[0] += x[1]
        return r[...]

    return written


def with_ref_plain(f: Function) -> Function:
    def written(x: Any) -> Any:
        r = x
        for _ in range(2):
            r = f(r) + np.array([x[1], 0.0])
        return r

    return written


def kernel(f: Function) -> Function:
    """Half of f(x) from each of two programs."""

    def program(x: Any, out: Any) -> None:
        @pl.when(pl.program_id(0) == 0)
        def _() -> None:
            out[...] = 0.5 * f(x[...])

        @pl.when(pl.program_id(0) == 1)
        def _() -> None:
            out[...] += 0.5 * f(x[...])

    return lambda x: pl.pallas_call(program, xlamini.ShapeDtypeStruct(x.shape, x.dtype), grid=2)(x)


def solved(f: Function) -> Function:
    """Solve (2 + |x[0]|) y = f(x) by custom_linear_solve."""

    def run(x: Any) -> Any:
        scale = 2.0 + x[0] * x[0]
        return lax.custom_linear_solve(lambda y: scale * y, f(x), lambda matvec, b: b / scale, symmetric=True)

    return run


def rooted(f: Function) -> Function:
    """The y with y**3 + y = f(x), by Newton's method."""

    def run(x: Any) -> Any:
        target = f(x)

        def residual(y: Any) -> Any:
            return y**3 + y - target

        def solve(residual: Function, guess: Any) -> Any:
            return lax.fori_loop(0, 30, lambda i, y: y - residual(y) / (3 * y**2 + 1), guess)

        def tangent_solve(g: Function, y: Any) -> Any:
            return y / g(jnp.ones_like(y))

        return lax.custom_root(residual, target * 0, solve, tangent_solve)

    return run


def rooted_plain(f: Function) -> Function:
    def run(x: Any) -> Any:
        target, y = f(x), 0 * x
        for _ in range(30):
            y = y - (y**3 + y - target) / (3 * y**2 + 1)
        return y

    return run


def same(f: Function) -> Function:
    return f


WRAPS: dict[str, Wrap] = {
    "jit": Wrap(xlamini.jit, same),
    "cond": Wrap(cond, cond_plain),
    "switch": Wrap(switch, switch_plain),
    "scan": Wrap(scan, scan_plain),
    "scan back": Wrap(scan_back, scan_back_plain),
    "fori": Wrap(fori, fori_plain),
    "while": Wrap(while_of(), while_plain, reverse=False),
    "bounded while": Wrap(while_of(max_steps=5), while_plain),
    "map": Wrap(mapped, mapped_plain),
    "vmap": Wrap(vmapped, mapped_plain),
    "collectives": Wrap(with_collective, with_collective_plain),
    "checkpoint": Wrap(xlamini.checkpoint, same),
    "xla_metadata_call": Wrap(xla_metadata_call(group="a"), same),
    "custom_jvp": Wrap(custom_jvp, times_x),
    "custom_vjp": Wrap(custom_vjp, times_x, reverse=True),
    "custom_vmap": Wrap(doubled_vmap, lambda f: lambda x: f(x) * 2),
    "ref": Wrap(with_ref, with_ref_plain),
    "kernel": Wrap(kernel, same),
    "custom_linear_solve": Wrap(solved, lambda f: lambda x: f(x) / (2.0 + x[0] * x[0])),
    "custom_root": Wrap(rooted, rooted_plain),
}
