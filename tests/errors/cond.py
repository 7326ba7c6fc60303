"""cond, switch, select, platform_dependent."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.support.error_rows import Custom, ones, row, square
from xlamini import grad, jit, lax, make_jaxpr, numpy as jnp, random, vmap
from xlamini.errors import ShapeError, TracerBoolConversionError, UnexpectedTracerError

cond, switch = lax.cond, lax.switch


def one(x: Any) -> Any:
    return {"w": [x, x]}


def other_shape(x: Any) -> Any:
    return {"w": [x, ones(2)]}


def other_dtype(x: Any) -> Any:
    return {"w": [x, 1]}


def three(a: Any, b: Any, c: Any) -> Any:
    return a + b + c


def leak(x: Any) -> Any:
    kept: list[Any] = []
    cond(x > 0, lambda: (kept.append(x * 2), x)[1], lambda: x)
    return kept[0]


ROWS = [
    row(
        "shapes", lambda: cond(True, one, other_shape, 1.0), TypeError,
        "cond branches must have equal output types but they differ",
        "output['w'][1] is float32[] from true_fun, float32[2] from false_fun", "true_fun is one at", "errors/cond.py:",
        "false_fun is other_shape", "jnp.broadcast_to(x, ())",
    ),
    row(
        "dtypes in jit", lambda: jit(lambda p: cond(p, one, other_dtype, 1.0))(True), TypeError,
        "output['w'][1] is float32[] from true_fun, int32[] from false_fun", ".astype('float32')",
    ),
    row(
        "dtypes in grad", lambda: grad(lambda x: cond(x > 0, lambda: x, lambda: 1))(2.0), TypeError,
        "output is float32[] from true_fun, int32[] from false_fun",
    ),
    row(
        "dtypes in vmap", lambda: vmap(lambda p: cond(p, lambda: 1.5, lambda: p))(ones(3) > 0), TypeError,
        "output is float32[] from true_fun, bool[] from false_fun",
    ),
    row(
        "structures", lambda: cond(True, lambda x: {"a": x}, lambda x: {"b": x}, 1.0), TypeError,
        "cond branch outputs must have the same pytree structure", "the output of true_fun has the keys 'a'",
        "false_fun has 'b'", "return the same structure",
    ),
    row(
        "None", lambda: cond(True, lambda: None, lambda: 1.0), TypeError, "the output of true_fun is None",
        "that of false_fun is a leaf",
    ),
    row(
        "switch shapes", lambda: switch(1, [square, square, lambda x: ones(3)], 1.0), TypeError,
        "switch branches must have", "output is float32[] from branches[0], float32[3] from branches[2]",
    ),
    row("output", lambda: cond(True, lambda: "a", lambda: "b"), TypeError, "<lambda> returned 'a' of type str"),
    row(
        "vector", lambda: cond(ones(2) > 0, square, square, 1.0), TypeError, "pred must be a scalar, got bool[2]",
        ".any()", "jnp.where",
    ),
    row(
        "traced vector", lambda: jit(lambda p: cond(p, square, square, 1.0))(ones(2)), TypeError,
        "pred must be a scalar, got float32[2]",
    ),
    row("no predicate", lambda: cond(None, square, square, 1.0), TypeError, "'pred' of cond is None", "x > 0"),
    row("text", lambda: cond("yes", square, square, 1.0), TypeError, "'pred' of cond is 'yes' of type str"),
    row("list", lambda: cond([True], square, square, 1.0), TypeError, "'pred' of cond is [True] of type list"),
    row("complex", lambda: cond(1j, square, square, 1.0), TypeError, "a bool or a real number, got dtype complex64"),
    row(
        "key", lambda: cond(random.key(0), square, square, 1.0), TypeError, "a bool or a real number", "dtype key<fry>"
    ),
    row(
        "not a function", lambda: cond(True, 3, square, 1.0), TypeError,  # type: ignore[arg-type]
        "cond: true_fun must be a function, got 3 of type int", "lambda",
    ),
    row(
        "operands", lambda: cond(True, square, three, 1.0), TypeError, "cond: false_fun, three at",
        "has the parameters (a: 'Any', b: 'Any', c: 'Any')", "called with 1 operand (",
    ),
    row("no operands", lambda: cond(True, square, square), TypeError, "cond: true_fun, square at", "with 0 operands"),
    row(
        "operand twice", lambda: cond(True, square, square, 1.0, operand=2.0), TypeError,
        "cond: operand= was given beside positional operands",
    ),
    row(
        "custom operand", lambda: cond(True, square, square, {"a": Custom()}), TypeError,
        "argument \"operands[0]['a']\" of cond is Custom()",
    ),
    row(
        "python if", lambda: cond(True, lambda x: x if x > 0 else -x, square, 1.0), TracerBoolConversionError, "where"
    ),
    row("leak", lambda: jit(lambda x: leak(x) + 1)(1.0), UnexpectedTracerError, "used after that trace ended"),
    row("no branches", lambda: switch(0, [], 1.0), ValueError, "switch: branches is empty"),
    row(
        "no sequence", lambda: switch(0, square, 1.0), TypeError,  # type: ignore[arg-type]
        "switch: branches must be a sequence of functions", "[f, g]",
    ),
    row(
        "no function", lambda: switch(0, [square, None], 1.0), TypeError,  # type: ignore[list-item]
        "switch: branches[1] must be a function, got None",
    ),
    row("float index", lambda: switch(0.5, [square] * 2, 1.0), TypeError, "an integer, got dtype float32", ".astype"),
    row("bool index", lambda: switch(True, [square] * 2, 1.0), TypeError, "an integer, got dtype bool", "use cond"),
    row("indices", lambda: switch(np.arange(2), [square] * 2, 1.0), TypeError, "index must be a scalar, got int32[2]"),
    row("select shapes", lambda: lax.select(True, ones(3), 1.0), ShapeError, "on_true is float32[3]", "jnp.where"),
    row("select dtypes", lambda: lax.select(True, ones(3), jnp.arange(3)), TypeError, "on_false is int32[3]", "where"),
    row(
        "no platform", lambda: lax.platform_dependent(1.0, tpu=square), NotImplementedError,
        "no branch for platform 'cpu', only for tpu", "default=",
    ),
    row("no platforms", lambda: lax.platform_dependent(1.0), ValueError, "give a function for a platform", "default=f"),
    row("gpu", lambda: lax.platform_dependent(1.0, gpu=square), ValueError, "'gpu' could be two platforms", "'cuda'"),
    row(
        "platform types", lambda: make_jaxpr(lambda x: lax.platform_dependent(x, cpu=square, default=lambda x: 1))(1.0),
        TypeError, "output is float32[] from cpu, int32[] from default",
    ),
]
