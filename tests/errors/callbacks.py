"""Callbacks that fail, return something else than announced, or cannot be transformed."""

from __future__ import annotations

from typing import Any

import numpy as np

import xlamini
from tests.support.error_rows import Custom, ones, row
from xlamini import ShapeDtypeStruct, debug, grad, jit, pure_callback, vmap
from xlamini.errors import CallbackError, UnexpectedTracerError
from xlamini.experimental import io_callback

SCALAR = ShapeDtypeStruct((), "float32")


def host(x: Any) -> Any:
    return x


def divided(x: Any) -> Any:
    return x // 0 if x is None else 1 // int(x - x)


def returning(value: Any, announced: Any = SCALAR) -> Any:
    """A program whose callback returns this."""

    def load(x: Any) -> Any:
        return value

    return jit(lambda x: pure_callback(load, announced, x))(1.0)


def leaked() -> Any:
    kept: list[Any] = []
    jit(lambda x: kept.append(x))(1.0)
    return pure_callback(host, SCALAR, kept[0])


ROWS = [
    row(
        "raises", lambda: jit(lambda x: pure_callback(divided, SCALAR, x))(1.0), CallbackError,
        "pure_callback: divided raised ZeroDivisionError", "It is called at ", "errors/callbacks.py:", "int(x - x)",
    ),
    row(
        "raises eagerly", lambda: io_callback(divided, SCALAR, 1.0), CallbackError,
        "io_callback: divided raised ZeroDivisionError", "1 // int(x - x)",
    ),
    row(
        "raises in vmap", lambda: jit(vmap(lambda x: debug.callback(divided, x)))(ones(3)), CallbackError,
        "debug.callback: divided raised ZeroDivisionError",
    ),
    row(
        "result's shape", lambda: returning(np.ones(3, "float32")), CallbackError, "load returned float32[3]",
        "result_shape_dtypes says float32[]", "called at",
    ),
    row(
        "result's dtype", lambda: returning({"a": np.int32(3)}, {"a": SCALAR}), CallbackError,
        "load returned int32[] at output['a'], but result_shape_dtypes says float32[]",
    ),
    row(
        "result's kind", lambda: returning(1.5, ShapeDtypeStruct((), "int32")),
        CallbackError, "load returned float32[]",
    ),
    row(
        "result no array", lambda: returning(("text", 1.0), (SCALAR, SCALAR)), CallbackError,
        "load returned 'text' of type str at output[0], which is no array",
    ),
    row(
        "result's structure", lambda: returning({"b": 1.0}, {"a": SCALAR}), CallbackError,
        "load returned another structure than result_shape_dtypes says", "'a'", "'b'",
    ),
    row("result None", lambda: returning(None), CallbackError, "load returned another structure", "None"),
    row(
        "result for None", lambda: jit(lambda x: io_callback(host, None, x))(1.0), CallbackError,
        "io_callback: host returned another structure", "None",
    ),
    row(
        "announced", lambda: pure_callback(host, {"a": 3.0}, 1.0), TypeError,
        "pure_callback: result_shape_dtypes['a'] is 3.0, without shape and dtype", "ShapeDtypeStruct(shape, dtype)",
    ),
    row(
        "announced 64 bits", lambda: io_callback(host, np.float64(1), 1.0), ValueError,
        "io_callback: result_shape_dtypes is of dtype float64", "float32", "enable_x64",
    ),
    row(
        "announced a key", lambda: pure_callback(host, xlamini.random.key(0), 1.0), TypeError, "key<fry>",
        "words",
    ),
    row(
        "no function", lambda: pure_callback(3, SCALAR, 1.0), TypeError, "pure_callback takes a function, got 3",  # type: ignore[arg-type]
    ),
    row(
        "no debug function", lambda: debug.callback(3, 1.0), TypeError, "debug.callback takes a function, got 3",  # type: ignore[arg-type]
    ),
    row(
        "argument", lambda: pure_callback(host, SCALAR, "text"), TypeError,
        "argument 'x' of host (the callback of pure_callback) is 'text' of type str",
    ),
    row(
        "argument of a class", lambda: io_callback(host, SCALAR, x=Custom()),
        TypeError, "argument 'x' of host", "Custom()",
    ),
    row("leaked", leaked, UnexpectedTracerError, "after that trace ended"),
    row(
        "sharding", lambda: pure_callback(host, SCALAR, 1.0, sharding=3),
        NotImplementedError, "sharding is not supported",
    ),
    row(
        "grad", lambda: grad(lambda x: pure_callback(host, SCALAR, x))(1.0), ValueError,
        "pure_callback: host is a Python function, which cannot be differentiated", "custom_vjp", "stop_gradient",
    ),
    row(
        "grad of io", lambda: jit(grad(lambda x: io_callback(host, SCALAR, x)))(1.0), ValueError,
        "io_callback: host is a Python function, which cannot be differentiated",
    ),
    row(
        "vmap", lambda: vmap(lambda x: pure_callback(host, SCALAR, x))(ones(3)), NotImplementedError,
        "pure_callback: under vmap it must be known how to call host", "vmap_method", "'sequential'",
    ),
    row(
        "vmap_method", lambda: pure_callback(host, SCALAR, 1.0, vmap_method="serial"), ValueError,
        "vmap_method must be one of sequential,", "got 'serial'",
    ),
    row(
        "vmap of ordered", lambda: vmap(lambda x: io_callback(host, SCALAR, x, ordered=True))(ones(3)), ValueError,
        "io_callback: the calls of host for the examples of vmap have no order", "ordered=False", "lax.map",
    ),
    row(
        "barrier inside", lambda: jit(lambda: debug.callback(xlamini.effects_barrier))(), CallbackError,
        "a callback cannot wait for its own program",
    ),
    row(
        "format: too few", lambda: debug.print("{} {}", 1),
        IndexError, "debug.print: the format '{} {}' asks for value 1",
        "1 are given by position",
    ),
    row("format: name", lambda: jit(lambda y: debug.print("{x}", y=y))(1), KeyError, "asks for 'x'", "not given"),
    row(
        "format: unused", lambda: debug.print("{}", 1, 2, y=3), ValueError,
        "debug.print: the format '{}' does not use value 1, 'y'", "f-string",
    ),
    row("format: braces", lambda: debug.print("{", 1), ValueError, "'{' is no format", "{{ for a brace"),
    row(
        "format: kind", lambda: debug.print(2), TypeError, "the format, a string, but got 2", "{}",  # type: ignore[arg-type]
    ),
    row(
        "format: array", lambda: jit(lambda x: debug.print("{:.2f}", x))(ones(2)), TypeError,
        "debug.print: '.2f' in '{:.2f}' formats a number, but the value is float32[2]", "printoptions",
    ),
]
