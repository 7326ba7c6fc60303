"""The programs whose texts are kept in tests/snapshots."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import xlamini as jax
from xlamini import lax, random

Program = tuple[Callable[..., Any], tuple[Any, ...]]

X, T = np.ones(3, np.float32), np.ones(3, np.float32)
A, B = np.ones((3, 4), np.float32), np.ones((4, 2), np.float32)
INDEX = np.int32(1)
CONSTANT = np.arange(3, dtype=np.float32)


def total(x: Any) -> Any:
    """The sum of all elements."""
    return lax.reduce_sum(x, tuple(range(x.ndim)))


def matmul(x: Any, y: Any) -> Any:
    return lax.dot_general(x, y, (((1,), (0,)), ((), ())))


@jax.jit
def layer(w: Any, x: Any) -> Any:
    return lax.tanh(matmul(x, w))


def loss(w: Any, x: Any) -> Any:
    hidden = layer(w, x)
    return total(hidden * hidden)


def shared(x: Any) -> Any:
    def block(x: Any) -> Any:
        return lax.sin(x) * 2.0

    block = jax.jit(block)
    return block(block(x)) + block(x)


def scoped(x: Any) -> Any:
    with jax.named_scope("outer"):
        y = lax.sin(x)
        with jax.named_scope("inner"):
            return y * 3.0


def taken(x: Any) -> Any:
    numbers = lax.GatherDimensionNumbers((1,), (0,), (0,))
    rows = np.array([[2], [0]], np.int32)
    return lax.gather(x, rows, numbers, (1, 4))


def put(x: Any, y: Any) -> Any:
    numbers = lax.ScatterDimensionNumbers((), (0,), (0,))
    return lax.scatter_add(x, np.array([[2], [0], [2]], np.int32), y, numbers)


JAXPRS: dict[str, Program] = {
    "arithmetic": (lambda x, y: (x + y * 2.0 - 1.0) / lax.exp(-x), (X, T)),
    "captured": (lambda x: jax.jit(lambda y: y + CONSTANT)(x) * CONSTANT, (X,)),
    "cond_by_select": (lambda x: lax.select_n(x > 0.0, -x, x), (X,)),
    "dot": (matmul, (A, B)),
    "dot_grad": (jax.grad(lambda a, b: total(matmul(a, b)), argnums=(0, 1)), (A, B)),
    "dot_vmap": (jax.vmap(matmul, in_axes=(None, 0)), (A, np.ones((5, 4, 2), np.float32))),
    "dynamic_slice": (lambda x, i: lax.dynamic_slice(x, (i, 0), (2, 2)), (A, INDEX)),
    "dynamic_slice_grad": (jax.grad(lambda x, i: total(lax.dynamic_slice(x, (i, 0), (2, 2)))), (A, INDEX)),
    "gather": (taken, (A,)),
    "gather_grad": (jax.grad(lambda x: total(taken(x))), (A,)),
    "grad_of_jit": (jax.grad(loss), (B, A)),
    "grad_of_shared": (jax.grad(lambda x: total(shared(x))), (X,)),
    "hessian": (jax.grad(jax.grad(lambda x: lax.sin(x) * x)), (1.0,)),
    "jvp": (lambda x, t: jax.jvp(lambda x: lax.tanh(x) * 2.0, (x,), (t,)), (X, T)),
    "jvp_of_jit": (lambda x, t: jax.jvp(shared, (x,), (t,)), (X, T)),
    "linearize": (lambda x, t: jax.linearize(lambda x: lax.sin(x) * x, x)[1](t), (X, T)),
    "nested_jit": (lambda w, x: jax.jit(loss)(w, x) + 1.0, (B, A)),
    "psum": (jax.vmap(lambda x: x / lax.psum(x, "i"), axis_name="i"), (X,)),
    "random_normal": (lambda seed: random.normal(random.key(seed), (3,)), (0,)),
    "random_split": (lambda seed: random.split(random.fold_in(random.key(seed), 7)), (0,)),
    "scatter_add": (put, (X, T)),
    "scatter_add_grad": (jax.grad(lambda x, y: total(put(x, y) ** 2), argnums=1), (X, T)),
    "shared": (shared, (X,)),
    "value_and_grad": (jax.value_and_grad(loss), (B, A)),
    "vjp": (lambda x, t: jax.vjp(lambda x: lax.exp(x) / x, x)[1](t), (X, T)),
    "vmap_of_grad": (jax.vmap(jax.grad(lambda x: lax.sin(x) ** 3)), (X,)),
    "vmap_of_jit": (jax.vmap(shared), (A,)),
}

MODULES: dict[str, Program] = {
    "arithmetic": JAXPRS["arithmetic"],
    "captured": JAXPRS["captured"],
    "grad_of_jit": JAXPRS["grad_of_jit"],
    "random_normal": JAXPRS["random_normal"],
    "shared": JAXPRS["shared"],
}
