"""The programs behind some names of the reference, where they teach what the name does; traced at each build."""

from __future__ import annotations

import doctest
import inspect
from typing import Any

import xlamini
from xlamini import lax, nn, numpy as jnp, random
from xlamini.sharding import PartitionSpec

PROGRAMS = """
jit | xlamini.jit(lambda x: jnp.sin(x) * 2) | 1.0
grad | xlamini.grad(lambda x: jnp.sin(x) * x) | 1.0
value_and_grad | xlamini.value_and_grad(lambda x: jnp.sin(x) * x) | 1.0
jvp | lambda x, t: xlamini.jvp(lambda x: jnp.sin(x) * x, (x,), (t,)) | 1.0, 1.0
vjp | lambda x, ct: xlamini.vjp(lambda x: jnp.sin(x) * x, x)[1](ct) | 1.0, 1.0
jacfwd | xlamini.jacfwd(jnp.tanh) | jnp.ones(3)
jacrev | xlamini.jacrev(jnp.tanh) | jnp.ones(3)
vmap | xlamini.vmap(jnp.dot, in_axes=(0, None)) | jnp.ones((5, 3)), jnp.ones(3)
checkpoint | xlamini.grad(xlamini.checkpoint(lambda x: jnp.sin(jnp.sin(x)))) | 1.0
custom_jvp | f | 1.0, 2.0
custom_vjp | clipped | 1.0
custom_batching.custom_vmap | f | 1.0, 2.0
linear_transpose | xlamini.linear_transpose(lambda x: 2 * x[::-1], jnp.ones(3)) | jnp.ones(3)
shard_map | xlamini.shard_map(lambda x: lax.psum(x, "i"), mesh=mesh, in_specs=P("i"), out_specs=P()) | jnp.ones(4)
pure_callback | lambda x: xlamini.pure_callback(abs, xlamini.typeof(x), x) | 1.0
Array | lambda x: x.at[1].set(2.0) | jnp.ones(3)
lax.cond | lambda x: lax.cond(x > 0, jnp.sin, jnp.cos, x) | 1.0
lax.switch | lambda i, x: lax.switch(i, [jnp.sin, jnp.cos, jnp.tan], x) | 1, 1.0
lax.scan | lambda xs: lax.scan(lambda total, x: (total + x, total), jnp.zeros(()), xs) | jnp.ones(4)
lax.while_loop | lambda x: lax.while_loop(lambda x: x < 10, lambda x: x * 2, x) | 1.0
lax.fori_loop | lambda x: lax.fori_loop(0, 10, lambda i, x: x * 2, x) | 1.0
lax.map | lambda xs: lax.map(jnp.sin, xs) | jnp.ones(4)
lax.stop_gradient | xlamini.grad(lambda x: lax.stop_gradient(x) * x) | 1.0
lax.psum | xlamini.vmap(lambda x: x / lax.psum(x, "i"), axis_name="i") | jnp.ones(4)
lax.associative_scan | lambda x: lax.associative_scan(jnp.add, x) | jnp.ones(4)
lax.dynamic_slice | lambda x, i: lax.dynamic_slice(x, (i,), (2,)) | jnp.ones(5), 1
lax.dot_general | lambda x, y: lax.dot_general(x, y, (((1,), (0,)), ((), ()))) | jnp.ones((2, 3)), jnp.ones((3, 4))
lax.top_k | lambda x: lax.top_k(x, 2) | jnp.ones(5)
numpy.where | lambda x: jnp.where(x > 0, x, 0) | jnp.ones(3)
numpy.einsum | lambda x, y: jnp.einsum("bij,bjk->bik", x, y) | jnp.ones((2, 3, 4)), jnp.ones((2, 4, 5))
numpy.matmul | jnp.matmul | jnp.ones((2, 3)), jnp.ones((3, 4))
numpy.mean | lambda x: jnp.mean(x, axis=0) | jnp.ones((2, 3))
numpy.var | jnp.var | jnp.ones(3)
numpy.sort | jnp.sort | jnp.ones(3)
numpy.argsort | jnp.argsort | jnp.ones(3)
numpy.cumsum | jnp.cumsum | jnp.ones(3)
numpy.clip | lambda x: jnp.clip(x, 0, 1) | jnp.ones(3)
numpy.concatenate | lambda x, y: jnp.concatenate([x, y]) | jnp.ones(2), jnp.ones(3)
numpy.take | lambda x, i: jnp.take(x, i) | jnp.ones(5), jnp.arange(2)
numpy.broadcast_to | lambda x: jnp.broadcast_to(x, (2, 3)) | jnp.ones(3)
numpy.outer | jnp.outer | jnp.ones(2), jnp.ones(3)
nn.softmax | nn.softmax | jnp.ones(3)
nn.relu | xlamini.grad(nn.relu) | 1.0
nn.logsumexp | nn.logsumexp | jnp.ones(3)
nn.one_hot | lambda i: nn.one_hot(i, 3) | jnp.arange(2)
random.split | random.split | random.key(0)
random.uniform | random.uniform | random.key(0)
"""
"""The name without `xlamini.`, a function, and arguments to trace it for, as in a program that imports `NAMES`.

A function that is a single word is that of the example in the name's docstring.
"""

ROWS = {f"xlamini.{name}": (fun, args) for name, fun, args in (row.split(" | ") for row in PROGRAMS.split("\n")[1:-1])}
NAMES = {"xlamini": xlamini, "lax": lax, "nn": nn, "jnp": jnp, "random": random, "P": PartitionSpec}


def session(name: str, member: Any) -> list[str]:
    """The lines of a session that prints the program of a public name; none for a name without one."""
    if name not in ROWS:
        return []
    fun, args = ROWS[name]
    names = {**NAMES, name.rpartition(".")[2]: member, "mesh": xlamini.make_mesh((1,), ("i",))}
    if fun.isidentifier():
        for example in doctest.DocTestParser().get_examples(inspect.getdoc(member) or ""):
            exec(example.source, names)
    jaxpr = xlamini.make_jaxpr(eval(fun, names))(*eval(f"({args},)", names))
    return [f">>> print(xlamini.make_jaxpr({fun})({args}))", *str(jaxpr).splitlines()]
