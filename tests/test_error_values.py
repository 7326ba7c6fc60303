"""Bad input: outputs, values that are not known or gone, types in place of arrays, keys. See tests/error_rows.py."""

from __future__ import annotations

import math
import pickle
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.error_rows import Custom, Row, check, doubled, ones, parameters, power_of, row, square
from xlamini import numpy as jnp
from xlamini import random
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
        "jnp.where or lax.cond",
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
        "range", lambda: jit(lambda n: list(range(n)))(3), TracerIntegerConversionError, "argument 'n'", "lax.fori_loop"
    ),
    row("shape", lambda: jit(jnp.zeros)(3), TracerIntegerConversionError, "argument 'shape'", "static_argnames"),
    row("axis", lambda: jit(lambda x, axis: x.sum(axis))(ones(3), 0), TracerIntegerConversionError, "argument 'axis'"),
    row("list", lambda: jit(lambda i: [1, 2][i])(1), TracerIntegerConversionError, "argument 'i'", "static"),
    row("NumPy", lambda: jit(lambda x: np.sin(x))(1.0), TracerArrayConversionError, "argument 'x'", "xlamini.numpy"),
    row("NumPy's index", lambda: jit(lambda i: np.arange(3)[i])(1), TracerArrayConversionError, "xlamini.numpy"),
    row("iteration", lambda: jit(lambda x: list(x))(1.0), TypeError, "iteration over a 0-d array"),
    row("length", lambda: jit(lambda x: len(x))(1.0), TypeError, "len() of unsized object"),
    row("hash", lambda: jit(lambda x: {x: 1})(1.0), TypeError, "unhashable type: JitTracer<~float32[]>"),
    row("pickle", lambda: jit(lambda x: pickle.dumps(x))(1.0), TypeError, "cannot be pickled", "return it"),
    row("assignment", lambda: jit(assigned)(ones(3)), TypeError, "immutable", "x.at[index].set(value)"),
    row("array assignment", lambda: assigned(ones(3)), TypeError, "immutable", "x.at[0].set(value)"),
    row("vector", lambda: float(ones(3)), TypeError, "only an array of shape ()", "float32[3]", "x.item()"),
    row("vector's truth", lambda: bool(ones(3)), ValueError, "an array of 3 elements, float32[3]", "x.any()"),
    row(
        "float as index", lambda: [1, 2][ones()], TypeError, "only an integer scalar", "float32[]",  # type: ignore[call-overload]
        "x.astype(int)",
    ),
    row("hash of an array", lambda: hash(ones(3)), TypeError, "unhashable type: 'Array'", "x.tobytes()"),
]


def assigned(x: Any) -> Any:
    x[0] = 1.0
    return x

LEAKS = [
    row(
        "operator", lambda: leaked() + 1, UnexpectedTracerError, "made while tracing <lambda>", "test_errors.py",
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



TYPES = [
    row(
        "grad of int", lambda: grad(square)(3), TypeError, "grad needs float or complex arguments",
        "'x' of square is int32[]",
    ),
    row(
        "grad of a leaf", lambda: grad(doubled)({"w": 3}), TypeError, "\"state['w']\" of doubled is int32[]",
        "allow_int=True",
    ),
    row("grad to int", lambda: grad(lambda x: 3)(1.0), TypeError, "grad needs a float output", "returned int32[]"),
    row("grad to complex", lambda: grad(square)(1j), TypeError, "grad needs a real output", "holomorphic=True"),
    row("sin of bool", lambda: lax.sin(ones(3) > 0), TypeError, "sin does not accept dtype bool", ".astype"),
    row(
        "text", lambda: jnp.sin("abc"), TypeError, "argument 'x' of sin is 'abc' of type str, not an array or a number"
    ),
    row("text and array", lambda: jnp.add(1.0, "a"), TypeError, "argument 'y' of add is 'a' of type str"),
    row("list", lambda: ones(3) + [1, 2, 3], TypeError, "an array and a list", "jnp.asarray"),
    row("list to sin", lambda: jnp.sin([1.0, 2.0]), TypeError, "sin: operand 0 must be an array or a number, got list"),
    row("None", lambda: ones(3) + None, TypeError, "unsupported operand type(s) for +"),
    row(
        "objects", lambda: jit(square)(np.array([1, None])), TypeError, "argument 'x' of square",
        "no array can have dtype object",
    ),
    row(
        "dates", lambda: jit(square)(np.array(["2020"], "M8[D]")), TypeError, "argument 'x' of square", "datetime64[D]"
    ),
    row(
        "nested None", lambda: jnp.array([1.5, None]), TypeError, "array: the nested lists hold None; pass numbers only"
    ),
    row("ragged", lambda: jnp.array([[1, 2], [3]]), ValueError, "inhomogeneous shape", "pad them"),
    row(
        "order of complex", lambda: lax.lt(ones(1) * 1j, ones(1) * 1j), TypeError, "lt does not accept dtype complex64"
    ),
    row("bits of floats", lambda: ones(3) & ones(3), TypeError, "and does not accept dtype float32", "signed"),
    row(
        "lax dtypes", lambda: lax.add(ones(3), ones(3, dtype=int)), TypeError, "dtypes differ: float32[3], int32[3]",
        ".astype",
    ),
    row(
        "no promotion", lambda: ones(3, dtype="float8_e4m3fn") + ones(3), TypePromotionError, "no common dtype",
        ".astype",
    ),
    row("no dtype", lambda: jnp.zeros(3, "floaty"), TypeError, "'floaty' is not a dtype", "'float32'"),
    row("object dtype", lambda: jnp.zeros(3, object), TypeError, "zeros: no array can have dtype object"),
    row("negative power", lambda: jnp.arange(3) ** -1, TypeError, "integers have no power -1", "int32[3]", ".astype"),
    row(
        "half power", lambda: lax.integer_pow(ones(3), 1.5), TypeError, "the exponent must be an integer, got 1.5",  # type: ignore[arg-type]
        "lax.pow",
    ),
    row("large int", lambda: jnp.array(2**40), OverflowError, "1099511627776 does not fit in int32", "a float"),
    row("large argument", lambda: jit(square)(2**40), OverflowError, "1099511627776 does not fit in int32"),
    row("large constant", lambda: jit(lambda x: x + 2**70)(1), OverflowError, "does not fit in int32"),
    row(
        "custom class", lambda: jit(square)(Custom()), TypeError, "'x' of square is Custom() of type Custom",
        "static_argnames",
    ),
    row(
        "in a container", lambda: jit(doubled)({"w": [1, "relu"]}), TypeError, "\"state['w'][1]\" of doubled is 'relu'"
    ),
    row(
        "custom in vmap", lambda: vmap(square)(Custom()), TypeError, "'x' of square is Custom() of type Custom",
        "close over",
    ),
    row("into numpy", lambda: jnp.asarray(Custom()), TypeError, "Custom"),
]

AXES = [
    row(
        "sum", lambda: ones(2, 3).sum(2), ValueError,
        "sum: axis 2 is out of range for an array of rank 2; it takes -2 to 1",
    ),
    row("sum of jit", lambda: jit(lambda x: x.sum(2))(ones(2, 3)), ValueError, "sum: axis 2 is out of range"),
    row("twice", lambda: ones(2, 3).sum((0, 0)), ValueError, "sum: axis (0, 0) names an axis twice"),
    row("no int", lambda: ones(2, 3).sum(1.5), TypeError, "sum: axis must be an integer, got 1.5 of type float"),
    row(
        "transpose", lambda: jnp.transpose(ones(2, 3), (0, 0)), ValueError, "transpose: axis (0, 0) names an axis twice"
    ),
    row(
        "squeeze", lambda: jnp.squeeze(ones(2, 3), 0), ShapeError, "squeeze: axis 0 of shape (2, 3) has length 2, not 1"
    ),
    row("softmax", lambda: nn.softmax(ones(2, 3), axis=4), ValueError, "softmax: axis 4 is out of range"),
    row("unbound name", lambda: lax.psum(1.0, "i"), NameError, "unbound axis name: 'i'", "vmap(..., axis_name='i')"),
    row("other name", lambda: vmap(lambda x: lax.psum(x, "j"), axis_name="i")(ones(3)), NameError, "'j'", "here: 'i'"),
    row("empty", lambda: jnp.max(ones(0)), ValueError, "max: axis 0 of shape (0,) is empty", "`initial`"),
    row("no step", lambda: jnp.arange(0, 5, 0), ZeroDivisionError, "arange: step must not be 0", "linspace"),
]

INDICES = [
    row("row", lambda: ones(3)[5], IndexError, "index 5 is out of bounds for axis 0 with size 3; it takes -3 to 2"),
    row(
        "row in jit", lambda: jit(lambda x: x[5])(ones(3)), IndexError,
        "index 5 is out of bounds for axis 0 with size 3",
    ),
    row("array", lambda: ones(3)[np.array([1, 7])], IndexError, "index 7 is out of bounds for axis 0 with size 3"),
    row(
        "nan", lambda: ones(3)[jnp.array([jnp.nan]).astype(int) - 9], IndexError,
        "is out of bounds for axis 0 with size 3",
    ),
    row(
        "nan itself", lambda: ones(3)[jnp.array([jnp.nan])], TypeError, "index 0 is an array of type float32[1]",
        ".astype(int)",
    ),
    row("update", lambda: ones(3).at[7].set(1.0), IndexError, "index 7 is out of bounds for axis 0 with size 3"),
    row("float", lambda: ones(3)[1.5], TypeError, "index 0 is 1.5 of type float", "int()"),
    row("text", lambda: ones(3)["a"], TypeError, "index 0 is 'a' of type str"),
    row("list", lambda: ones(3)[[0, 1]], TypeError, "a list is no index", "x[jnp.array(index)]"),
    row("too many", lambda: ones(3)[0, 0], IndexError, "an array of shape (3,) has 1 axes, but 2 are indexed"),
    row("scalar", lambda: ones()[0], IndexError, "an array of shape () has 0 axes", "x[()]"),
    row("mask size", lambda: ones(3)[ones(4) > 0], IndexError, "a boolean index of shape (4,) does not fit", "(3,)"),
    row("mask in jit", lambda: jit(lambda x: x[x > 0])(ones(3)), NonConcreteBooleanIndexError, "jnp.where(mask, x, 0)"),
    row(
        "slice in jit", lambda: jit(lambda x, n: x[:n])(ones(3), 2), IndexError, "traced bound",
        "lax.dynamic_slice_in_dim",
    ),
    row("nonzero in jit", lambda: jit(jnp.nonzero)(ones(3)), ConcretizationTypeError, "nonzero: the length", "`size`"),
    row(
        "empty take", lambda: jnp.take(ones(0, 3), jnp.array([0]), 0), IndexError,
        "take: axis 0 of shape (0, 3) is empty",
    ),
    row(
        "take", lambda: jnp.take(ones(3), ones(1)), TypeError, "take: indices must be integers, got f32[1]",
        ".astype(int)",
    ),
    row("mode", lambda: ones(3).at[0].set(1.0, mode="bad"), ValueError, "unknown mode 'bad'", "'clip'"),
]

TREES = [
    row(
        "jvp", lambda: xlamini.jvp(doubled, ({"w": 1.0},), ({"b": 1.0},)), TypeError,
        "keys 'w', where tangents[0] has 'b'",
    ),
    row(
        "jvp number", lambda: xlamini.jvp(square, (1.0,), 1.0), TypeError, "jvp: tangents must be a tuple or list",
        "float",
    ),
    row(
        "jvp shape", lambda: xlamini.jvp(square, (ones(3),), (ones(4),)), ShapeError, "tangent of 'x' has shape (4,)",
        "(3,)",
    ),
    row(
        "jvp dtype", lambda: xlamini.jvp(square, (1.0,), (np.float16(1),)), TypeError, "is float16, its primal float32"
    ),
    row(
        "jvp int", lambda: xlamini.jvp(square, (1,), (1,)), TypeError, "must have dtype float0",
        "np.zeros((), xlamini.float0)",
    ),
    row(
        "vjp", lambda: xlamini.vjp(lambda x: (x, x), 1.0)[1](1.0), TypeError,
        "a tuple of length 2, but cotangent is a leaf",
    ),
    row("vjp shape", lambda: xlamini.vjp(square, ones(3))[1](1.0), ShapeError, "float32[], but the output of square"),
    row("vjp count", lambda: xlamini.vjp(square, 1.0)[1](1.0, 1.0), TypeError, "takes one argument", "got 2"),
    row(
        "vjp text", lambda: xlamini.vjp(square, 1.0)[1]("a"), TypeError,
        "argument 'cotangent' of the pullback of square is 'a'",
    ),
    row("not linear", lambda: xlamini.linear_transpose(jnp.sin, 1.0)(1.0), NotImplementedError, "sin is not linear"),
    row("map", lambda: tree.map(max, {"a": 1}, {"b": 1}), ValueError, "tree has the keys 'a', where rest[0] has 'b'"),
    row(
        "mixed keys", lambda: tree.flatten({1: 1, "a": 2}), ValueError, "[1, 'a'] are of type int and str",
        "keys of one type",
    ),
    row("mixed keys in grad", lambda: grad(square)({1: 1.0, "a": 1.0}), ValueError, "must have an order"),
    row("endless", lambda: tree.leaves(endless()), RecursionError, "the pytree contains itself"),
    row("endless in grad", lambda: grad(square)(endless()), RecursionError, "the pytree contains itself"),
    row("leaves", lambda: tree.unflatten(tree.structure([1, 2]), [1]), ValueError, "expected 2, got 1"),
    row(
        "twice", lambda: [tree_util.register_pytree_node(Once, *[list] * 2) for _ in "ab"], ValueError,
        "Once is a pytree node",
    ),
    row(
        "transpose", lambda: tree.transpose(tree.structure([0]), tree.structure((0,)), [(1, 2)]), TypeError,
        "tuple of length 2",
    ),
]


class Once:
    """Registered by the row `twice`."""


def endless() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


MAPPED = [
    row(
        "in_axes tree", lambda: vmap(doubled, in_axes=({"b": 0},))({"w": ones(3)}), ValueError,
        "in_axes[0] has the keys 'b'",
    ),
    row(
        "in_axes count", lambda: vmap(square, in_axes=(0, 0))(ones(3)), ValueError, "in_axes has 2 entries",
        "1 positional",
    ),
    row(
        "in_axes rank", lambda: vmap(square, in_axes=1)(ones(3)), ValueError, "in_axes is 1 for x of square",
        "axes 0 to 0",
    ),
    row("scalar", lambda: vmap(square)(1.0), ValueError, "float32[] and has no axis to map; use None"),
    row("in_axes text", lambda: vmap(square, in_axes="a")(ones(3)), TypeError, "in_axes must be ints", "got 'a' for x"),
    row(
        "sizes", lambda: vmap(power_of)(ones(3), ones(4)), ValueError, "axis 0 of x (float32[3]) has size 3",
        "axis 0 of n",
    ),
    row("nothing", lambda: vmap(square, in_axes=None)(ones(3)), ValueError, "vmap: nothing is mapped", "axis_size"),
    row("no arguments", lambda: vmap(lambda: 1.0)(), ValueError, "vmap: nothing is mapped"),
    row("axis_size", lambda: vmap(square, axis_size=4)(ones(3)), ValueError, "differ in size", "axis_size has size 4"),
    row(
        "negative axis_size", lambda: vmap(square, axis_size=-1), TypeError,
        "axis_size must be an int, 0 or more, got -1",
    ),
    row("out_axes", lambda: vmap(square, out_axes=1)(ones(3)), ValueError, "out_axes is 1 for output 0 of square"),
    row("out_axes None", lambda: vmap(square, out_axes=None)(ones(3)), ValueError, "depends on a mapped argument"),
    row(
        "out_axes tree", lambda: vmap(lambda x: (x, x), out_axes=(0, 0, 0))(ones(3)), ValueError, "a tuple of length 3"
    ),
]

OPTIONS = [
    row(
        "unhashable", lambda: jit(power_of, static_argnums=1)(1.0, [1]), ValueError,
        "'n' of power_of is of type list", "a tuple",
    ),
    row(
        "unhashable name", lambda: jit(power_of, static_argnames="n")(1.0, n={}), ValueError,
        "'n' of power_of is of type dict",
    ),
    row(
        "array", lambda: jit(power_of, static_argnums=1)(1.0, ones(3)), ValueError, "'n' of power_of",
        "make the argument dynamic",
    ),
    row(
        "traced", lambda: jit(jit(power_of, static_argnums=1))(1.0, 2.0), ValueError,
        "'n' of power_of is of type Tracer",
    ),
    row(
        "number", lambda: jit(power_of, static_argnums=5), ValueError, "static_argnums has 5",
        "takes 2 positional arguments",
    ),
    row("no number", lambda: jit(power_of, static_argnums="n"), TypeError, "static_argnums must be an int", "got 'n'"),
    row("name", lambda: jit(power_of, static_argnames="m"), ValueError, "has no such argument; it takes x, n"),
    row(
        "no name", lambda: jit(power_of, static_argnames=1), TypeError, "static_argnames must be a name",  # type: ignore[arg-type]
        "got 1",
    ),
    row("donated", lambda: jit(power_of, donate_argnums=7), ValueError, "donate_argnums has 7"),
    row(
        "static and donated", lambda: jit(power_of, static_argnums=1, donate_argnums=1), ValueError,
        "'n' of power_of is both",
    ),
    row(
        "compiler", lambda: jit(square, compiler_options=[3])(1.0), TypeError, "compiler_options must be a dict",  # type: ignore[arg-type]
        "got [3]",
    ),
    row(
        "no option", lambda: jit(square, compiler_options={"foo": 1})(1.0), errors.JaxRuntimeError,
        "No such compile option",
    ),
    row("device", lambda: jit(square, device=3)(1.0), TypeError, "device must be a device or a sharding, but is 3"),
    row("put", lambda: xlamini.device_put(1.0, "foo"), TypeError, "device must be a device", "xlamini.devices()[0]"),
    row("platform", lambda: xlamini.devices("foo"), RuntimeError, "there is no platform 'foo'; xlamini knows cpu"),
    row("jit", lambda: jit(3), TypeError, "jit takes a function, got 3 of type int"),
    row("grad", lambda: grad(None), TypeError, "grad takes a function, got None"),  # type: ignore[arg-type]
    row("vmap", lambda: vmap(3), TypeError, "vmap takes a function, got 3"),  # type: ignore[arg-type]
    row(
        "make_jaxpr", lambda: xlamini.make_jaxpr(3), TypeError,  # type: ignore[arg-type]
        "make_jaxpr takes a function, got 3",
    ),
    row(
        "jvp", lambda: xlamini.jvp(3, (1.0,), (1.0,)), TypeError,  # type: ignore[arg-type]
        "jvp takes a function, got 3",
    ),
    row("argnums", lambda: grad(square, argnums=1)(1.0), TypeError, "argnums 1 names no positional argument", "square"),
    row(
        "argnums kind", lambda: grad(square, argnums="x")(1.0), TypeError,  # type: ignore[arg-type]
        "argnums must be an int or a tuple of ints",
    ),
    row("keyword", lambda: grad(square)(x=1.0), TypeError, "pass the argument by position, not by keyword"),
    row(
        "flag", lambda: config.update("enable_foo", True), AttributeError, "no flag 'enable_foo'",
        "did you mean enable_x64",
    ),
    row(
        "flag's value", lambda: config.update("enable_x64", "maybe"), TypeError, "enable_x64 takes a value of type bool"
    ),
    row("dialect", lambda: jit(square).lower(1.0).as_text("hlo"), ValueError, "dialect must be 'stablehlo', got 'hlo'"),
]

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
        "jnp.where or lax.cond",
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
        "range", lambda: jit(lambda n: list(range(n)))(3), TracerIntegerConversionError, "argument 'n'", "lax.fori_loop"
    ),
    row("shape", lambda: jit(jnp.zeros)(3), TracerIntegerConversionError, "argument 'shape'", "static_argnames"),
    row("axis", lambda: jit(lambda x, axis: x.sum(axis))(ones(3), 0), TracerIntegerConversionError, "argument 'axis'"),
    row("list", lambda: jit(lambda i: [1, 2][i])(1), TracerIntegerConversionError, "argument 'i'", "static"),
    row("NumPy", lambda: jit(lambda x: np.sin(x))(1.0), TracerArrayConversionError, "argument 'x'", "xlamini.numpy"),
    row("NumPy's index", lambda: jit(lambda i: np.arange(3)[i])(1), TracerArrayConversionError, "xlamini.numpy"),
    row("iteration", lambda: jit(lambda x: list(x))(1.0), TypeError, "iteration over a 0-d array"),
    row("length", lambda: jit(lambda x: len(x))(1.0), TypeError, "len() of unsized object"),
    row("hash", lambda: jit(lambda x: {x: 1})(1.0), TypeError, "unhashable type: JitTracer<~float32[]>"),
    row("pickle", lambda: jit(lambda x: pickle.dumps(x))(1.0), TypeError, "cannot be pickled", "return it"),
    row("assignment", lambda: jit(assigned)(ones(3)), TypeError, "immutable", "x.at[index].set(value)"),
    row("array assignment", lambda: assigned(ones(3)), TypeError, "immutable", "x.at[0].set(value)"),
    row("vector", lambda: float(ones(3)), TypeError, "only an array of shape ()", "float32[3]", "x.item()"),
    row("vector's truth", lambda: bool(ones(3)), ValueError, "an array of 3 elements, float32[3]", "x.any()"),
    row(
        "float as index", lambda: [1, 2][ones()], TypeError, "only an integer scalar", "float32[]",  # type: ignore[call-overload]
        "x.astype(int)",
    ),
    row("hash of an array", lambda: hash(ones(3)), TypeError, "unhashable type: 'Array'", "x.tobytes()"),
]


def assigned(x: Any) -> Any:
    x[0] = 1.0
    return x


LEAKS = [
    row(
        "operator", lambda: leaked() + 1, UnexpectedTracerError, "made while tracing <lambda>", "test_errors.py",
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
