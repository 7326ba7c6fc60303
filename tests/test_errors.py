"""Bad input: shapes, dtypes, axes, indices, pytrees, options. See tests/support/error_rows.py."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

import numpy as np
import pytest

import xlamini
from tests import errors as error_modules
from tests.support.error_rows import Custom, Row, check, doubled, ones, parameters, power_of, row, square
from xlamini import config, errors, lax, nn, numpy as jnp, tree, tree_util
from xlamini.errors import ConcretizationTypeError, NonConcreteBooleanIndexError, ShapeError, TypePromotionError

jit, grad, vmap = xlamini.jit, xlamini.grad, xlamini.vmap

SHAPES = [
    row(
        "add", lambda: ones(3) + ones(4), ShapeError,
        "add: Incompatible shapes for broadcasting: float32[3], float32[4]",
        "equal or 1",
    ),
    row("lax.add", lambda: lax.add(ones(3), ones(4)), ShapeError, "add: the operands' shapes differ", "broadcast_to"),
    row("add in jit", lambda: jit(lambda x, y: x + y)(ones(3), ones(4)), ShapeError, "add: Incomp", "float32[4]"),
    row("add in grad", lambda: grad(lambda x: (x + ones(4)).sum())(ones(3)), ShapeError, "add: Incomp", "float32[4]"),
    row("add in vmap", lambda: vmap(lambda x: x + ones(4))(ones(2, 3)), ShapeError, "float32[3], float32[4]"),
    row("add in all", lambda: jit(vmap(grad(lambda x: (x + ones(4)).sum())))(ones(2, 3)), ShapeError, "float32[3]"),
    row(
        "matmul", lambda: ones(2, 3) @ ones(2, 3), ShapeError, "matmul: contracting dimensions differ",
        "float32[2,3]", ".T",
    ),
    row("matmul scalar", lambda: ones(2, 3) @ 1.0, ValueError, "matmul: b is a scalar", "*"),
    row("dot", lambda: jnp.dot(ones(3), ones(4)), ShapeError, "dot: contracting dimensions differ", "(3,)", "(4,)"),
    row(
        "dot_general",
        lambda: lax.dot_general(ones(2, 3), ones(2, 3), (((1, 1), (1, 1)), ((), ()))),
        ShapeError,
        "dot_general: a dimension of lhs is named twice",
    ),
    row(
        "dot_general numbers", lambda: lax.dot_general(ones(3), ones(3), 3), TypeError,
        "dimension_numbers is 3",  # type: ignore[arg-type]
        "write ((",
    ),
    row("concatenate", lambda: jnp.concatenate([ones(2, 3), ones(2, 4)]), ShapeError, "concatenate", "(2, 3), (2, 4)"),
    row(
        "concatenate ranks", lambda: jnp.concatenate([ones(2), ones()]), ShapeError, "numbers of dimensions",
        "expand_dims",
    ),
    row("concatenate none", lambda: jnp.concatenate([]), ValueError, "concatenate: at least one array is needed"),
    row(
        "stack", lambda: jnp.stack([ones(3), ones(4)]), ShapeError, "stack: the arrays must have one shape",
        "concatenate",
    ),
    row(
        "reshape", lambda: ones(2, 3).reshape(4), ShapeError,
        "reshape: cannot reshape array of shape (2, 3), which has 6 elements,", "(4,)",
    ),
    row("reshape -1", lambda: ones(2, 3).reshape(-1, -1), ShapeError, "only one size can follow from the others"),
    row("reshape text", lambda: ones(2, 3).reshape("a"), TypeError, "reshape: a size must be an integer, got 'a'"),
    row(
        "broadcast_to", lambda: jnp.broadcast_to(ones(2, 3), (3, 3)), ShapeError, "(2, 3) does not broadcast to (3, 3)"
    ),
    row(
        "where", lambda: jnp.where(ones(3) > 0, ones(4), 0),
        ShapeError, "where: Incompatible shapes for broadcasting", "bool[3]",
    ),
    row("where half", lambda: jnp.where(ones(3) > 0, ones(3)), TypeError, "where: both x and y are needed"),
    row(
        "einsum", lambda: jnp.einsum("ij,jk->ik", ones(2, 3), ones(2, 3)), ShapeError,
        "einsum: label 'j' has size 3, but 2",
    ),
    row(
        "einsum output", lambda: jnp.einsum("ij->ik", ones(2, 3)), ValueError, "'ij->ik' has 'k', which no operand has"
    ),
    row("einsum rank", lambda: jnp.einsum("ijk->i", ones(2, 3)), ValueError, "names 3 axes, but its operand has 2"),
    row(
        "split", lambda: jnp.split(ones(3), 2), ShapeError, "split: 3 elements do not make 2 equal parts", "array_split"
    ),
    row("update", lambda: ones(3).at[:2].set(ones(3)), ShapeError, "(3,) does not broadcast to the shape (2,)"),
    row("slice", lambda: lax.slice(ones(3), (0,), (5,)), ShapeError, "slice: 0:5:1 does not fit dimension 0 of f32[3]"),
    row(
        "dynamic_slice", lambda: lax.dynamic_slice(ones(3), (0,), (5,)), ShapeError,
        "slice_sizes (5,) do not fit f32[3]",
    ),
    row("negative", lambda: jnp.zeros(-1), TypeError, "zeros: a shape holds no negative size, got (-1,)"),
    row(
        "too large", lambda: jnp.zeros((2**31, 2**31)), ShapeError,
        "float32[2147483648,2147483648] is larger than any memory",
    ),
]

DTYPES = [
    row(
        "grad of int", lambda: grad(square)(3), TypeError, "grad requires real- or complex-valued inputs",
        "'x' of square is int32[]",
    ),
    row(
        "grad of a leaf", lambda: grad(doubled)({"w": 3}), TypeError, "\"state['w']\" of doubled is int32[]",
        "allow_int=True",
    ),
    row(
        "grad to int", lambda: grad(lambda x: 3)(1.0),
        TypeError, "grad requires real-valued outputs", "returned int32[]",
    ),
    row(
        "grad to complex", lambda: grad(square)(1j),
        TypeError, "grad requires real-valued outputs", "holomorphic=True",
    ),
    row("sin of bool", lambda: lax.sin(ones(3) > 0), TypeError, "sin does not accept dtype bool", ".astype"),
    row(
        "text", lambda: jnp.sin("abc"), TypeError, "argument 'x' of sin is 'abc' of type str, not an array or a number"
    ),
    row("text and array", lambda: jnp.add(1.0, "a"), TypeError, "argument 'y' of add is 'a' of type str"),
    row("list", lambda: ones(3) * [1, 2, 3], TypeError, "an array and a list", "jnp.asarray"),
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
    row("array as dtype", lambda: jnp.zeros(3, jnp.ones(2)), ValueError, "zeros: an array was given", "x.dtype"),
    row("object dtype", lambda: jnp.zeros(3, object), TypeError, "zeros: no array can have dtype object"),
    row("negative power", lambda: jnp.arange(3) ** -1, TypeError, "integers have no power -1", "int32[3]", ".astype"),
    row(
        "half power", lambda: lax.integer_pow(ones(3), 1.5), TypeError,
        "the exponent must be an integer, got 1.5",  # type: ignore[arg-type]
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
        "xlamini.ds(start, size)",
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
        "vjp", lambda: xlamini.vjp(lambda x: (x, x), 1.0)[1](1.0), ValueError,
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
    row(
        "axis_size", lambda: vmap(square, axis_size=4)(ones(3)),
        ValueError, "got inconsistent sizes for array axes to be mapped", "axis_size has size 4",
    ),
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
        "no name", lambda: jit(power_of, static_argnames=1), TypeError,
        "static_argnames must be a name",  # type: ignore[arg-type]
        "got 1",
    ),
    row("donated", lambda: jit(power_of, donate_argnums=7), ValueError, "donate_argnums has 7"),
    row(
        "static and donated", lambda: jit(power_of, static_argnums=1, donate_argnums=1), ValueError,
        "'n' of power_of is both",
    ),
    row(
        "compiler", lambda: jit(square, compiler_options=[3])(1.0), TypeError,
        "compiler_options must be a dict",  # type: ignore[arg-type]
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
    row("dialect", lambda: jit(square).lower(1.0).as_text("mhlo"), ValueError, "'stablehlo' or 'hlo', got 'mhlo'"),
]


FAMILIES = {
    "shapes": SHAPES,
    "dtypes": DTYPES,
    "axes": AXES,
    "indices": INDICES,
    "trees": TREES,
    "mapped": MAPPED,
    "options": OPTIONS,
}


FAMILIES |= {
    module.name: importlib.import_module(f"tests.errors.{module.name}").ROWS
    for module in pkgutil.iter_modules(error_modules.__path__)
}


@pytest.mark.parametrize("case", parameters(FAMILIES))
def test_bad_input(case: Row) -> None:
    check(case)
