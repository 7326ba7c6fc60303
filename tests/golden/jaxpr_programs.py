"""Programs whose jaxpr must print as JAX prints it, written for any library that has JAX's names."""
from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

Programs = dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]

NUMBER = 1.0
VECTOR = np.arange(3, dtype=np.float32)
MATRIX = np.ones((3, 4), np.float32)
CONSTANT = np.arange(3, dtype=np.float32)


def programs(jax: ModuleType) -> Programs:
    """Each program with its arguments, by name."""
    return {**first_order(jax.lax), **shapes(jax.lax), **calls(jax), **rewritten(jax), **layout(jax)}


def first_order(lax: ModuleType) -> Programs:
    """Equations, literals and captured values."""

    def trace_demo(u: Any, v: Any) -> Any:
        w = u + v
        return w**2

    return {
        "trace_demo": (trace_demo, (1, 2)),
        "identity": (lambda x: x, (NUMBER,)),
        "no outputs": (lambda x: (), (NUMBER,)),
        "constant outputs": (lambda x: (1.0, x, 2, True, np.float32(3), 1j), (NUMBER,)),
        "captured": (lambda x: x + CONSTANT, (VECTOR,)),
        "literals": (lambda x: (x * 2.0 + 1.5, -3.0 * x, 1e-5 * x, x * 1e22), (VECTOR,)),
        "odd literals": (lambda x: (x + float("nan"), x - float("inf"), x * np.float32(0.1)), (VECTOR,)),
        "integers": (lambda x, y: x + np.int8(3) * y - 1, (np.int8(2), np.int8(5))),
        "booleans": (lambda x, y: lax.bitwise_and(x > y, x < 1.0), (VECTOR, VECTOR)),
        "complex": (lambda x: x * (1 + 2j), (np.complex64(1j),)),
        "half": (lambda x: lax.exp(x) * np.float16(0.1), (np.float16(1),)),
        "transcendental": (lambda x: lax.tanh(lax.exp(lax.sin(x))) + lax.log1p(x), (VECTOR,)),
        "powers": (lambda x: (x**3, lax.sqrt(x), lax.rsqrt(x)), (VECTOR,)),
        "select": (lambda x: lax.select_n(x > 0.0, -x, x), (VECTOR,)),
        "clamp": (lambda x: lax.clamp(0.0, x, 1.0), (NUMBER,)),
        "convert": (lambda x: lax.convert_element_type(x, np.int32), (MATRIX,)),
        "unused": (lambda x: (lax.sin(x), lax.cos(x))[0], (NUMBER,)),
    }


def shapes(lax: ModuleType) -> Programs:
    """Params of all kinds."""
    return {
        "broadcast": (lambda x: (lax.broadcast(2.0, (2, 3)), lax.broadcast(x, (2,))), (VECTOR,)),
        "expand": (lambda x: lax.expand_dims(x, (1,)), (VECTOR,)),
        "transpose": (lambda x: lax.transpose(x, (1, 0)), (MATRIX,)),
        "squeeze": (lambda x: lax.squeeze(lax.expand_dims(x, (0,)), (0,)), (VECTOR,)),
        "slice": (lambda x: lax.slice(x, (1, 0), (3, 2)), (MATRIX,)),
        "rev": (lambda x: lax.rev(x, (0,)), (VECTOR,)),
        "pad": (lambda x: lax.pad(x, np.float32(0), ((1, 1, 0), (0, 2, 1))), (MATRIX,)),
        "concatenate": (lambda x, y: lax.concatenate([x, y, x], 0), (VECTOR, VECTOR)),
        "dynamic slice": (lambda x, i: lax.dynamic_slice(x, (i, 0), (1, 4)), (MATRIX, np.int32(1))),
        "extrema": (lambda x: (lax.argmax(x, 0, np.int32), lax.cumsum(x, 0), lax.sort(x)), (VECTOR,)),
        "reduce precision": (lambda x: lax.reduce_precision(x, 8, 7), (VECTOR,)),
        "dot": (lambda x, y: lax.dot_general(x, y, (((1,), (1,)), ((), ()))), (MATRIX, MATRIX)),
        "batched dot": (
            lambda x, y: lax.dot_general(x, y, (((1,), (1,)), ((0,), (0,))), preferred_element_type=np.float32),
            (MATRIX, MATRIX),
        ),
    }


def calls(jax: ModuleType) -> Programs:
    """Jaxprs in params: names taken over, printed once where shared or long."""
    sin, cos = jax.lax.sin, jax.lax.cos

    @jax.jit
    def f(x: Any) -> Any:
        return sin(x) * 2.0

    @jax.jit
    def g(x: Any, y: Any) -> Any:
        return f(x) + f(y)

    @jax.jit
    def several(x: Any, y: Any) -> Any:
        return sin(y), x, cos(x), x

    def long(x: Any) -> Any:
        for _ in range(11):
            x = sin(x)
        return x

    twice = [jax.jit(lambda x: sin(x) + 1.0), jax.jit(lambda x: cos(x) + 2.0)]
    return {
        "call": (lambda x: f(x) + 1.0, (VECTOR,)),
        "call twice": (lambda x: f(x) + f(x), (VECTOR,)),
        "calls in calls": (lambda x: g(x, 2 * x), (VECTOR,)),
        "call of one argument twice": (lambda x: jax.jit(lambda x, y: x + y)(x, x), (VECTOR,)),
        "call of a number": (lambda x: jax.jit(lambda x, y: x * y)(x, np.float32(2)), (VECTOR,)),
        "several results": (lambda x, y: several(y, x), (VECTOR, VECTOR)),
        "unused result": (lambda x: jax.jit(lambda x, y: (x + 1.0, y * 2.0))(x, x)[0], (VECTOR,)),
        "three deep": (lambda x: jax.jit(lambda x: jax.jit(lambda x: f(x) + 1.0)(x) * 3.0)(x), (VECTOR,)),
        "three deep, twice": (lambda x: g(x, x) + g(x, x), (VECTOR,)),
        "nameless twice": (lambda x: [h(h(x)) for h in twice], (VECTOR,)),
        "long body": (lambda x: jax.jit(long)(x), (VECTOR,)),
        "inlined": (lambda x: jax.jit(lambda x: sin(x) + 1.0, inline=True)(x), (VECTOR,)),
    }


def rewritten(jax: ModuleType) -> Programs:
    """What transformations make."""
    sin = jax.lax.sin
    return {
        "jvp": (lambda x, t: jax.jvp(sin, (x,), (t,)), (VECTOR, VECTOR)),
        "grad": (jax.grad(lambda x: jax.lax.exp(sin(x))), (NUMBER,)),
        "vmap": (jax.vmap(lambda x, y: sin(x) * y, in_axes=(0, None)), (MATRIX, NUMBER)),
        "vmap of a call": (jax.vmap(jax.jit(lambda x: sin(x) + 1.0)), (MATRIX,)),
    }


def layout(jax: ModuleType) -> Programs:
    """Lines that are too long."""

    def long_chain(x: Any) -> Any:
        for _ in range(60):
            x = jax.lax.cos(x)
        return x

    return {
        "many names": (long_chain, (NUMBER,)),
        "many arguments": (lambda *xs: jax.lax.concatenate(xs, 0), (VECTOR,) * 40),
        "many results": (lambda *xs: [x + 1.0 for x in xs], (VECTOR,) * 30),
        "many of a call": (lambda *xs: jax.jit(lambda *xs: xs[::-1])(*xs), (NUMBER,) * 60),
    }
