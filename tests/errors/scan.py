"""scan, map and associative_scan: carries whose type changes, lengths that differ, options."""
from __future__ import annotations

from typing import Any

import numpy as np

import xlamini
from tests.support.error_rows import ones, row
from xlamini import lax, numpy as jnp
from xlamini.errors import UnexpectedTracerError

grad, jit, vmap = xlamini.grad, xlamini.jit, xlamini.vmap


def step(c: Any, x: Any) -> Any:
    return {"n": c["n"] / 2, "w": [c["w"][0] + x[0], c["w"][1]]}, x


START = {"n": jnp.int32(1), "w": [ones(), ones(2)]}
XS = {"a": ones(3, 2), "b": [ones(4)]}


def add(c: Any, x: Any) -> Any:
    return c + x, c


def kept_tracer() -> Any:
    kept = []

    def body(c: Any, x: Any) -> Any:
        kept.append(c * x)
        return c + x, None

    lax.scan(body, 0.0, ones(3))
    return kept[0] + 1


ROWS = [
    row(
        "carry types", lambda: lax.scan(step, START, ones(3, 2)), TypeError,
        "step must return a carry of the types it takes, but",
        "c['n'] is given as int32[], returned as float32[]",
        "Return .astype('int32') of it from step, or start from init['n'] of dtype float32",
    ),
    row(
        "carry shapes", lambda: lax.scan(lambda c, x: ((c[0] + x, c[1][None]), None), (0.0, ones(2)), ones(3, 2)),
        TypeError,
        "c[0] is given as float32[] (weakly typed), returned as float32[2]",
        "c[1] is given as float32[2], returned as float32[1,2]", "init[0]",
    ),
    row(
        "carry tree", lambda: lax.scan(lambda c, x: ((c, x), None), 0.0, ones(3)), TypeError,
        "<lambda> must return a carry with the structure of the one it takes",
        "c is a leaf, but the returned c is a tuple of length 2",
    ),
    row(
        "carry in all",
        lambda: jit(vmap(grad(lambda h: lax.scan(lambda c, x: (c[None], None), h, ones(3))[0])))(ones(2)),
        TypeError, "<lambda> must return a carry", "float32[1]",
    ),
    row(
        "one value", lambda: lax.scan(lambda c, x: c + x, 0.0, ones(3)), TypeError,
        "scan: <lambda> must return a pair (carry, y), but returned one array, float32[]", "(carry, None)",
    ),
    row(
        "three values", lambda: lax.scan(lambda c, x: (c, x, x), 0.0, ones(3)), TypeError,  # type: ignore[arg-type]
        "a tuple of 3",
    ),
    row(
        "none", lambda: lax.scan(lambda c, x: None, 0.0, ones(3)), TypeError, "returned None",  # type: ignore[arg-type]
    ),
    row(
        "no array", lambda: lax.scan(lambda c, x: (c, "a"), 0.0, ones(3)), TypeError,
        "<lambda> returned 'a' of type str",
    ),
    row(
        "lengths", lambda: lax.scan(add, 0.0, XS), ValueError,
        "scan: all arrays in xs must be of one length along dimension 0",
        "xs['a'] has length 3 and xs['b'][0], float32[4], has 4",
    ),
    row(
        "length", lambda: lax.scan(add, 0.0, ones(3), length=4), ValueError,
        "length is 4 and xs, float32[3], has 3",
    ),
    row(
        "scalar leaf", lambda: lax.scan(add, 0.0, {"a": ones(3), "b": 1.0}), ValueError,
        "scan: xs['b'] is a scalar, float32[]", "close over", "jnp.broadcast_to",
    ),
    row(
        "no length", lambda: lax.scan(add, 0.0), ValueError, "scan: xs has no arrays", "length=n",
    ),
    row("negative length", lambda: lax.scan(add, 0.0, length=-2), ValueError, "scan: length must be 0 or more, got -2"),
    row(
        "length of a float", lambda: lax.scan(add, 0.0, length=2.5), TypeError,  # type: ignore[arg-type]
        "scan: length must be an int", "got 2.5 of type float",
    ),
    row(
        "traced length", lambda: jit(lambda n: lax.scan(add, 0.0, length=n))(3), TypeError,
        "scan: length must be an int that is known when the loop is traced", "fori_loop",
    ),
    row(
        "unroll", lambda: lax.scan(add, 0.0, ones(3), unroll=-1), ValueError, "scan: unroll must be 0 or more, got -1",
    ),
    row(
        "unroll of a float", lambda: lax.scan(add, 0.0, ones(3), unroll=1.5), TypeError,  # type: ignore[arg-type]
        "scan: unroll must be an int or a bool, got 1.5 of type float",
    ),
    row("f", lambda: lax.scan(3, 0.0, ones(3)), TypeError, "scan: f must be a function, got 3"),  # type: ignore[arg-type]
    row(
        "xs of text", lambda: lax.scan(add, 0.0, {"a": "b"}), TypeError,
        "argument \"xs['a']\" of scan is 'b' of type str",
    ),
    row("init of text", lambda: lax.scan(add, ["b"], ones(3)), TypeError, "argument 'init[0]' of scan is 'b'"),
    row("escaped", kept_tracer, UnexpectedTracerError, "made while tracing body", "used after that trace ended"),
    row(
        "control flow", lambda: lax.scan(lambda c, x: (c if x > 0 else -c, None), 0.0, ones(3)), TypeError,
        "while <lambda> is traced", "argument 'x'",
    ),
    row(
        "map f", lambda: lax.map(None, ones(3)), TypeError, "map: f must be a function, got None",  # type: ignore[arg-type]
    ),
    row("map lengths", lambda: lax.map(lambda x: x, XS), ValueError, "map: all arrays in xs", "xs['b'][0]"),
    row("map scalar", lambda: lax.map(lambda x: x, 1.0), ValueError, "map: xs is a scalar, float32[]"),
    row("map nothing", lambda: lax.map(lambda x: x, ()), ValueError, "map: xs has no arrays", "one array"),
    row("map batch_size 0", lambda: lax.map(jnp.sin, ones(3), batch_size=0), ValueError, "map: batch_size must be 1"),
    row(
        "map batch_size", lambda: lax.map(jnp.sin, ones(3), batch_size=1.5), TypeError,  # type: ignore[arg-type]
        "map: batch_size must be an int or None, got 1.5 of type float",
    ),
    row("map batch_size lengths", lambda: lax.map(lambda x: x, XS, batch_size=2), ValueError, "map: all arrays in xs"),
    row(
        "associative_scan lengths", lambda: lax.associative_scan(lambda a, b: a, {"a": ones(3, 2), "b": ones(2, 2)}),
        ValueError, "of one length along axis 0, but elems['a'] is float32[3,2] and elems['b'] is float32[2,2]",
    ),
    row(
        "associative_scan axis", lambda: lax.associative_scan(jnp.add, ones(3), axis=1), ValueError,
        "associative_scan: axis 1 does not fit elems, float32[3]; it takes -1 to 0",
    ),
    row(
        "associative_scan ranks", lambda: lax.associative_scan(lambda a, b: a, (ones(2, 3), ones(3)), axis=1),
        ValueError, "along axis 1", "elems[1] is float32[3]",
    ),
    row(
        "associative_scan scalar", lambda: lax.associative_scan(jnp.add, 1.0), ValueError,
        "axis 0 does not fit elems, float32[]; give an array",
    ),
    row("associative_scan nothing", lambda: lax.associative_scan(jnp.add, []), ValueError, "elems has no arrays"),
    row(
        "associative_scan fn", lambda: lax.associative_scan(1, ones(3)), TypeError, "fn must be a function",  # type: ignore[arg-type]
    ),
    row(
        "associative_scan tree", lambda: lax.associative_scan(lambda a, b: (a, b), ones(3)), TypeError,
        "associative_scan: fn must return the structure that it takes",
    ),
    row(
        "associative_scan types", lambda: lax.associative_scan(lambda a, b: {"u": a["u"] > b["u"]}, {"u": ones(3)}),
        TypeError, "a['u'] is float32[1], output['u'] is bool[1]",
    ),
    row(
        "associative_scan shapes", lambda: lax.associative_scan(lambda a, b: (a + b).sum(), np.ones(4, np.float32)),
        TypeError, "a is float32[2], output is float32[]", "combines them elementwise", "vmap",
    ),
    row(
        "reverse", lambda: lax.scan(lambda c, x: (c, x), 0.0, ones(3), reverse="no"), TypeError,  # type: ignore[arg-type]
        "scan: reverse must be True or False",
    ),
]
