"""Loops that are wrong: carries whose type changes, conditions that are no bool, bounds, limits."""
from __future__ import annotations

from typing import Any

import xlamini
from tests.support.error_rows import ones, row
from xlamini import lax, numpy as jnp
from xlamini.experimental import io_callback

grad, jit, vmap = xlamini.grad, xlamini.jit, xlamini.vmap


def until_five(c: Any) -> Any:
    return c["n"] < 5


def step(c: Any) -> Any:
    return {"n": c["n"] + 1, "w": c["w"][None], "b": c["b"] / 2}


START = {"n": 0, "w": ones(3), "b": jnp.int32(3)}


def halved(x: Any) -> Any:
    return lax.while_loop(lambda c: c > 1, lambda c: c * x, x)


def told(x: Any) -> Any:
    return io_callback(lambda x: x + 1, xlamini.ShapeDtypeStruct((), "int32"), x)


ROWS = [
    row(
        "while_loop types", lambda: lax.while_loop(until_five, step, START), TypeError,
        "step must return a carry of the types it takes, but",
        "c['w'] is given as float32[3], returned as float32[1,3]",
        "c['b'] is given as int32[], returned as float32[]",
        "Return .astype('int32') of it from step, or start from init_val['b'] of dtype float32",
    ),
    row(
        "while_loop shape", lambda: lax.while_loop(lambda c: True, lambda c: c[None], ones(3)), TypeError,
        "c is given as float32[3], returned as float32[1,3]", "Return an array of shape (3,) from <lambda>",
    ),
    row(
        "while_loop weak type", lambda: lax.while_loop(lambda c: c < 3, lambda c: 1, 0.0), TypeError,
        "c is given as float32[] (weakly typed), returned as int32[] (weakly typed)", ".astype('float32')",
    ),
    row(
        "while_loop many", lambda: lax.while_loop(lambda c: True, lambda c: [x[None] for x in c], [ones(2)] * 14),
        TypeError, "c[3] is given as float32[2]", "and 10 more",
    ),
    row(
        "while_loop tree", lambda: lax.while_loop(lambda c: True, lambda c: (c, c), ones(3)), TypeError,
        "<lambda> must return a carry with the structure of the one it takes",
        "c is a leaf, but the returned c is a tuple of length 2", "init_val",
    ),
    row(
        "while_loop keys", lambda: lax.while_loop(until_five, lambda c: {"n": c["n"] + 1, "w": c["w"]}, START),
        TypeError,
        "c has the keys 'b', which the returned c lacks",
    ),
    row(
        "while_loop list", lambda: jit(lambda x: lax.while_loop(lambda c: True, lambda c: (c[0],), [x]))(1.0),
        TypeError,
        "c is a list of length 1, but the returned c is a tuple of length 1",
    ),
    row(
        "while_loop condition vector", lambda: lax.while_loop(lambda c: c < 3, lambda c: c + 1, ones(3)), TypeError,
        "while_loop: cond_fun <lambda> must return one bool, bool[], but returned bool[3]", "jnp.all or jnp.any",
    ),
    row(
        "while_loop condition number", lambda: lax.while_loop(lambda c: c, lambda c: c - 1, 3), TypeError,
        "cond_fun <lambda> must return one bool, bool[], but returned int32[]", "compare",
    ),
    row(
        "while_loop condition tree", lambda: lax.while_loop(lambda c: (c < 3, c > 0), lambda c: c + 1, 1), TypeError,
        "cond_fun <lambda> must return one bool", "PyTreeDef((*, *))", "& or |",
    ),
    row(
        "while_loop condition none", lambda: lax.while_loop(lambda c: None, lambda c: c, 1), TypeError,
        "cond_fun <lambda> must return one bool", "None",
    ),
    row(
        "while_loop cond_fun", lambda: lax.while_loop(True, lambda c: c, 1), TypeError,  # type: ignore[arg-type]
        "cond_fun must be a function",
    ),
    row(
        "while_loop body_fun", lambda: lax.while_loop(lambda c: True, 3, 1), TypeError,  # type: ignore[arg-type]
        "body_fun must be a function",
    ),
    row(
        "while_loop init", lambda: lax.while_loop(lambda c: True, lambda c: c, {"a": "b"}), TypeError,
        "argument \"init_val['a']\" of while_loop is 'b' of type str",
    ),
    row(
        "while_loop reverse", lambda: grad(halved)(0.5), ValueError, "(halved)",
        "Reverse-mode differentiation does not work for lax.while_loop", "trip count is unknown", "max_steps=N",
        "fori_loop", "scan", "jvp",
    ),
    row(
        "while_loop reverse in all", lambda: jit(vmap(grad(halved)))(ones(2) / 2), ValueError, "(halved)",
        "max_steps=N",
    ),
    row(
        "fori_loop reverse", lambda: jit(grad(lambda x, n: lax.fori_loop(0, n, lambda i, c: c * x, x)))(2.0, 3),
        ValueError, "Reverse-mode differentiation does not work for lax.while_loop", "bounds that are Python ints",
    ),
    row(
        "while_loop effects", lambda: vmap(lambda x: lax.while_loop(lambda c: c < 3, told, x))(jnp.arange(2)),
        NotImplementedError, "while_loop: its functions have effects (IO)", "under vmap", "out of the loop",
    ),
    row(
        "while_loop max_steps float", lambda: lax.while_loop(lambda c: c < 3, lambda c: c, 1, max_steps=2.0), TypeError,
         # type: ignore[arg-type],
        "max_steps must be None or an int from 0 to 2**31 - 1, got 2.0 of type float",
    ),
    row(
        "while_loop max_steps below 0", lambda: lax.while_loop(lambda c: c < 3, lambda c: c, 1, max_steps=-1),
        ValueError,
        "max_steps must be None or an int from 0", "got -1",
    ),
    row(
        "while_loop max_steps traced",
        lambda: jit(lambda n: lax.while_loop(lambda c: c < 3, lambda c: c, 1, max_steps=n))(3), TypeError,
        "max_steps must be None or an int", "known when the loop is traced",
    ),
    row(
        "fori_loop types", lambda: lax.fori_loop(0, 3, lambda i, val: (val[0], val[1] * 0.5), (0, jnp.int8(1))),
        TypeError,
        "fori_loop body function", "<lambda> must return", "val[1] is given as int8[], returned as float32[]",
        "init_val[1] of dtype float32",
    ),
    row(
        "fori_loop tree", lambda: lax.fori_loop(0, 3, lambda i, val: (val,), 1), TypeError,
        "val is a leaf, but the returned val is a tuple of length 1",
    ),
    row(
        "fori_loop float", lambda: lax.fori_loop(0, 3.0, lambda i, c: c, 1), TypeError,
        "fori_loop: upper must be one integer, got float32[]", "int()",
    ),
    row(
        "fori_loop traced float", lambda: jit(lambda n: lax.fori_loop(0, n, lambda i, c: c, 1))(3.0), TypeError,
        "fori_loop: upper must be one integer, got float32[]",
    ),
    row(
        "fori_loop vector", lambda: lax.fori_loop(jnp.arange(3), 3, lambda i, c: c, 1), TypeError,
        "fori_loop: lower must be one integer, got int32[3]", "vmap",
    ),
    row(
        "fori_loop none", lambda: lax.fori_loop(0, None, lambda i, c: c, 1), TypeError,
        "argument 'upper' of fori_loop is None of type NoneType",
    ),
    row(
        "fori_loop dtypes", lambda: lax.fori_loop(jnp.int8(0), jnp.int32(3), lambda i, c: c, 1), TypeError,
        "lower and upper must be of one dtype, got int8 and int32", ".astype('int8')",
    ),
    row(
        "fori_loop unroll traced", lambda: jit(lambda n: lax.fori_loop(0, n, lambda i, c: c, 1, unroll=2))(3),
        ValueError,
        "fori_loop: unroll=2 needs bounds that are known", "Python ints",
    ),
    row(
        "fori_loop unroll 0", lambda: lax.fori_loop(0, 3, lambda i, c: c, 1, unroll=0), ValueError,
        "unroll must be at least 1",
    ),
    row(
        "fori_loop unroll text", lambda: lax.fori_loop(0, 3, lambda i, c: c, 1, unroll="2"), TypeError,
         # type: ignore[arg-type],
        "unroll must be an int or a bool, got '2'",
    ),
    row(
        "fori_loop body_fun", lambda: lax.fori_loop(0, 3, None, 1), TypeError,  # type: ignore[arg-type]
        "fori_loop: body_fun must be a function",
    ),
    row(
        "fori_loop init", lambda: lax.fori_loop(0, 3, lambda i, c: c, [object()]), TypeError,
        "'init_val[0]' of fori_loop",
    ),
]
