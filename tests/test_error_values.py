"""Bad input: outputs, values that are not known or gone, types in place of arrays, keys; see error_rows.py."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.support.error_rows import Custom, Row, check, doubled, ones, parameters, power_of, row, square
from xlamini import numpy as jnp, random
from xlamini.errors import (
    ConcretizationTypeError,
    DeletedArrayError,
    ShapeError,
    TracerArrayConversionError,
    TracerBoolConversionError,
    TracerIntegerConversionError,
    UnexpectedTracerError,
)

jit, grad, vmap = xlamini.jit, xlamini.grad, xlamini.vmap
Struct = xlamini.ShapeDtypeStruct


def leaked() -> Any:
    """A tracer whose trace has ended."""
    kept = []
    jit(lambda x: kept.append(x * 2))(1.0)
    return kept[0]


def deleted() -> Any:
    x = jnp.arange(3.0) + 1
    x.delete()
    return x


OUTPUTS = [
    row("text", lambda: jit(lambda x: {"a": x, "b": "text"})(1.0), TypeError, "'text' of type str at output['b']"),
    row("object", lambda: jit(lambda x: (x, Custom()))(1.0), TypeError, "Custom() of type Custom at output[1]"),
    row(
        "objects", lambda: jit(lambda x: np.array([None]))(1.0), TypeError, "dtype=object", "of type ndarray at output"
    ),
    row("in grad", lambda: grad(lambda x: "a")(1.0), TypeError, "returned 'a' of type str"),
    row("in vmap", lambda: vmap(lambda x: "a")(ones(3)), TypeError, "returned 'a' of type str"),
    row("type", lambda: jit(lambda x: Struct((3,), "float32"))(1.0), TypeError, "of type ShapeDtypeStruct at output"),
    row(
        "no scalar", lambda: grad(square)(ones(3)), ShapeError,
        "square must return a scalar, but it returned float32[3]", ".sum()",
    ),
    row("tuple", lambda: grad(lambda x: (x, x))(1.0), TypeError, "returned a tuple", "has_aux=True"),
    row("no aux", lambda: grad(square, has_aux=True)(1.0), TypeError, "must return a pair (output, aux)"),
]

TRACERS = [
    row(
        "if", lambda: jit(lambda x: x if x > 0 else -x)(1.0), TracerBoolConversionError, "argument 'x'",
        "jnp.where",
    ),
    row(
        "if on a leaf", lambda: jit(lambda p: 1.0 if p["w"] > 0 else 0.0)({"w": 1.0}), TracerBoolConversionError,
        "p['w']",
    ),
    row(
        "if in vmap", lambda: vmap(lambda x: x if x > 0 else -x)(ones(3)), TracerBoolConversionError, "argument 'x'",
        "jnp.where",
    ),
    row("if in both", lambda: jit(grad(lambda x: x if x > 0 else -x))(1.0), TracerBoolConversionError, "argument 'x'"),
    row("in", lambda: jit(lambda x: 1 in x)(ones(3)), TracerBoolConversionError, "argument 'x'"),
    row("int", lambda: jit(lambda x: int(x))(1.0), ConcretizationTypeError, "The int", "float32[]", ".astype('int32')"),
    row("float", lambda: vmap(lambda x: float(x))(ones(3)), ConcretizationTypeError, "The float", ".astype('float32')"),
    row("math", lambda: jit(math.sin)(1.0), ConcretizationTypeError, "The float of a traced value"),
    row("complex", lambda: jit(lambda x: complex(x))(1.0), ConcretizationTypeError, ".astype('complex64')"),
    row("item", lambda: jit(lambda x: x.item())(1.0), ConcretizationTypeError, "Return the value"),
    row(
        "format", lambda: jit(lambda x: f"{x:.2f}")(1.0), ConcretizationTypeError, "to be formatted", "without a format"
    ),
    row(
        "range", lambda: jit(lambda n: list(range(n)))(3), TracerIntegerConversionError, "'n'", "lax.dynamic_slice"
    ),
    row("shape", lambda: jit(jnp.zeros)(3), TracerIntegerConversionError, "argument 'shape'", "static_argnames"),
    row("axis", lambda: jit(lambda x, axis: x.sum(axis))(ones(3), 0), TracerIntegerConversionError, "argument 'axis'"),
    row("list", lambda: jit(lambda i: [1, 2][i])(1), TracerIntegerConversionError, "argument 'i'", "static"),
    row("NumPy", lambda: jit(lambda x: np.sin(x))(1.0), TracerArrayConversionError, "argument 'x'", "xlamini.numpy"),
    row("NumPy's index", lambda: jit(lambda i: np.arange(3)[i])(1), TracerArrayConversionError, "xlamini.numpy"),
    row("iteration", lambda: jit(lambda x: list(x))(1.0), TypeError, "iteration over a 0-d array"),
    row("length", lambda: jit(lambda x: len(x))(1.0), TypeError, "len() of unsized object"),
    row("hash", lambda: jit(lambda x: {x: 1})(1.0), TypeError, "unhashable type: 'Tracer'"),
    row("pickle", lambda: jit(lambda x: pickle.dumps(x))(1.0), TypeError, "cannot be pickled", "return it"),
    row("assignment", lambda: jit(assigned)(ones(3)), TypeError, "immutable", "x.at[index].set(value)"),
    row("array assignment", lambda: assigned(ones(3)), TypeError, "immutable", "x.at[0].set(value)"),
    row("vector", lambda: float(ones(3)), TypeError, "only an array of shape ()", "float32[3]", "x.item()"),
    row("vector's truth", lambda: bool(ones(3)), ValueError, "an array of 3 elements, float32[3]", "x.any()"),
    row(
        "float as index", lambda: [1, 2][ones()], TypeError, "only an integer scalar", "float32[]",  # type: ignore[call-overload]
        "x.astype(int)",
    ),
    row("hash of an array", lambda: hash(ones(3)), TypeError, "unhashable type: 'jaxlib._jax.ArrayImpl'"),
]


def assigned(x: Any) -> Any:
    x[0] = 1.0
    return x


LEAKS = [
    row(
        "operator", lambda: leaked() + 1, UnexpectedTracerError, "made while tracing <lambda>", __file__,
        "return it",
    ),
    row("function", lambda: jnp.sin(leaked()), UnexpectedTracerError, "the argument 'x' of sin"),
    row("argument of jit", lambda: jit(square)(leaked()), UnexpectedTracerError, "the argument 'x' of square"),
    row("argument of grad", lambda: grad(lambda y: y)(leaked()), UnexpectedTracerError, "the argument 'y' of <lambda>"),
    row("argument of vmap", lambda: vmap(lambda y: y)(leaked()), UnexpectedTracerError, "the argument 'y' of <lambda>"),
    row("closure of jit", lambda: jit(lambda y, x=leaked(): y + x)(1.0), UnexpectedTracerError, "made while tracing"),
    row("result", lambda: jit(lambda y: leaked())(1.0), UnexpectedTracerError, "made while tracing"),
    row("number", lambda: float(leaked()), UnexpectedTracerError, "after that trace ended"),
    row("NumPy", lambda: np.asarray(leaked()), UnexpectedTracerError, "after that trace ended"),
    row("device_put", lambda: xlamini.device_put(leaked()), UnexpectedTracerError, "after that trace ended"),
    row("attribute", lambda: Keeper().twice(), UnexpectedTracerError, "as its argument 'x'", "attribute"),
]


class Keeper:
    """Keeps what it is called with."""

    def __call__(self, x: Any) -> Any:
        self.kept = x
        return x

    def twice(self) -> Any:
        grad(self)(1.0)
        return self.kept * 2


DELETED = [
    row("operator", lambda: deleted() + 1, DeletedArrayError, "an array float32[3], was deleted or donated"),
    row("function", lambda: jnp.sin(deleted()), DeletedArrayError, "the argument 'x' of sin, an array float32[3]"),
    row(
        "jit", lambda: jit(doubled)({"w": deleted()}), DeletedArrayError,
        "\"state['w']\" of doubled, an array float32[3]",
    ),
    row("grad", lambda: grad(square)(deleted()), DeletedArrayError, "the argument 'x' of square"),
    row("vmap", lambda: vmap(lambda x: x)(deleted()), DeletedArrayError, "the argument 'x' of <lambda>"),
    row("vjp", lambda: xlamini.vjp(square, deleted()), DeletedArrayError, "the argument 'x' of square"),
    row(
        "closure", lambda: jit(lambda y, x=deleted(): y + x)(1.0), DeletedArrayError, "the array that <lambda> captured"
    ),
    row(
        "grad's closure", lambda: grad(lambda y, x=deleted(): (x * y).sum())(1.0), DeletedArrayError,
        "deleted or donated",
    ),
    row(
        "compiled", lambda: jit(square).lower(ones(3)).compile()(deleted()), DeletedArrayError,
        "the argument 'x' of square",
    ),
    row("NumPy", lambda: np.add(deleted(), 1), DeletedArrayError, "float32[3]"),
    row("index", lambda: deleted()[0], DeletedArrayError, "float32[3]"),
    row("update", lambda: deleted().at[0].set(1), DeletedArrayError, "float32[3]"),
    row("copy", lambda: deleted().copy(), DeletedArrayError, "float32[3]"),
    row("pickle", lambda: pickle.dumps(deleted()), DeletedArrayError, "float32[3]"),
    row("get", lambda: xlamini.device_get({"a": deleted()}), DeletedArrayError, "float32[3]"),
    row("DLPack", lambda: np.from_dlpack(deleted()), DeletedArrayError, "float32[3]"),
]


def compiled() -> Any:
    return jit(doubled).lower({"w": ones(3)}).compile()


TYPES = [
    row("into jit", lambda: jit(square)(Struct((3,), "float32")), TypeError, "a type without values", "eval_shape"),
    row("into grad", lambda: grad(square)(Struct((), "float32")), TypeError, "'x' of square", "a type without values"),
    row("into sin", lambda: jnp.sin(Struct((3,), "float32")), TypeError, "'x' of sin", "a type without values"),
    row("no dtype", lambda: Struct((3,), None), ValueError, "dtype must be given", "'float32'"),
    row("negative", lambda: Struct((-3,), "float32"), ShapeError, "(-3,) has a negative size"),
    row("no shape", lambda: Struct(3, "float32"), TypeError, "shape must be a sequence of ints, got 3"),
    row("lowered", lambda: jit(power_of).lower(ones(3), ones(4)), ShapeError, "float32[3], float32[4]"),
    row("compiled tree", lambda: compiled()(ones(3)), TypeError, "expected[0][0] is a dict", "given[0][0] is a leaf"),
    row(
        "compiled shape", lambda: compiled()({"w": ones(4)}), TypeError,
        "state['w']: compiled for f32[3], called with f32[4]",
    ),
    row("compiled text", lambda: compiled()({"w": "a"}), TypeError, "\"state['w']\" of doubled is 'a'"),
    row(
        "compiled in jit", lambda: jit(lambda x: compiled()({"w": x}))(ones(3)), TypeError, "a traced value",
        "call the jitted",
    ),
]

RANDOM = [
    row("no key", lambda: random.normal(1.0), TypeError, "normal: a key is needed, got 1.0", "random.key(0)"),
    row("three words", lambda: random.normal(jnp.zeros(3, "uint32")), TypeError, "uint32[2]; got uint32[3]"),
    row(
        "keys", lambda: random.normal(random.split(random.key(0), 3)), ValueError, "array of keys of shape (3,)", "vmap"
    ),
    row("negative", lambda: random.normal(random.key(0), (-1,)), ValueError, "normal: shape", "(-1,)"),
    row("dtype", lambda: random.normal(random.key(0), (3,), int), ValueError, "normal: dtype must be a float"),
    row("seed", lambda: random.key(1.5), TypeError, "key: the seed must be an integer, got 1.5"),
    row("arithmetic", lambda: random.key(0) + 1, TypeError, "unsupported operand type(s) for +"),
    row("NumPy", lambda: np.asarray(random.key(0)), TypeError, "a key array is no NumPy array", "random.key_data"),
]


FAMILIES = {
    "outputs": OUTPUTS,
    "tracers": TRACERS,
    "leaks": LEAKS,
    "deleted": DELETED,
    "types": TYPES,
    "random": RANDOM,
}


@pytest.mark.parametrize("case", parameters(FAMILIES))
def test_bad_input(case: Row) -> None:
    check(case)
