"""Arguments whose mistakes Python itself would report, from a line of the library."""
from __future__ import annotations

from typing import Any

import numpy as np

from tests.support.error_rows import ones, row, square
from xlamini import (
    api_util,
    custom_jvp,
    devices,
    dlpack,
    errors,
    export,
    grad,
    jit,
    lax,
    numpy as jnp,
    random,
    ref,
    tree,
    tree_util,
    vmap,
)
from xlamini.errors import ShapeError
from xlamini.scipy import linalg, special
from xlamini.sharding import Mesh, NamedSharding, PartitionSpec as P


def mapped(fun: Any) -> Any:
    return vmap(fun, axis_name="i")(ones(3))


@custom_jvp
def squared_tangent(x: Any) -> Any:
    return x


@squared_tangent.defjvp
def _(primals: Any, tangents: Any) -> Any:
    return primals[0], tangents[0] ** 2


def surrogate() -> Any:
    def f(x: Any) -> Any:
        return x + "a"

    f.__name__ = "a\udc80"
    return jit(f)(1.0)


def over_two() -> NamedSharding:
    return NamedSharding(Mesh(np.array(devices()[:2]), ("x",)), P("x"))


ENDLESS: list[Any] = []
ENDLESS.append(ENDLESS)

ROWS = [
    # guards
    row("fill_value", lambda: ones(3).at[0].get(mode="fill", fill_value="a"), TypeError, "fill_value must be a number"),
    row("mesh of texts", lambda: Mesh(np.array(["a"]), ("x",)), TypeError, "Mesh: devices must be devices, got 'a'"),
    row("leaf of what", lambda: tree_util.treedef_is_leaf(3), TypeError, "treedef_is_leaf: treedef must be", "got 3"),
    row("children of what", lambda: tree_util.treedef_children([1]), TypeError, "treedef_children: treedef must be"),
    row("tuple of what", lambda: tree_util.treedef_tuple([3]), TypeError, "treedef_tuple: each of treedefs must be"),
    row(
        "axes of what", lambda: api_util.flatten_axes("x", 3, 3), TypeError,
        "flatten_axes: treedef must be a tree's structure, got 3 of type int",
    ),
    row("donated", lambda: api_util.donation_vector((0,), (), 3), TypeError, "donation_vector: in_tree must be a tree"),
    row(
        "several devices", lambda: dlpack.from_dlpack(np.ones(3), device=over_two()), ValueError,
        "from_dlpack: device is a sharding of 2 devices", "device_put",
    ),
    row("helper", lambda: jnp.where(square, 1, 2), TypeError, "argument 'condition' of where is <function"),
    row("weights", lambda: jnp.bincount(jnp.arange(3), square), TypeError, "argument 'weights' of bincount is <func"),
    row("angle", lambda: special.sph_harm_y(2, 2, 2, square), TypeError, "argument 'phi' of sph_harm_y is <function"),
    row("separator", lambda: tree_util.keystr((), separator=3), TypeError, "keystr: separator must be a string, got 3"),
    row("endless paths", lambda: tree.leaves_with_path(ENDLESS), RecursionError, "the pytree contains itself"),
    row("dtype that is no text", lambda: ones(3, dtype="\ud800"), TypeError, "is not a dtype"),
    row("free_ref", lambda: ref.free_ref(ones(3)), TypeError, "free_ref: a ref is needed, got Array", "new_ref"),
    row("empty_ref", lambda: ref.empty_ref(3), TypeError, "empty_ref: ty needs a shape and a dtype, got int"),
    row("Ref", lambda: ref.Ref(64), TypeError, "Ref: a ref is made from a value by xlamini.new_ref(x), not from int"),
    row("get", lambda: ref.get({}, 1), TypeError, "get: a ref is needed, got dict"),
    row("triangle of a number", lambda: jnp.tril_indices_from(2), ShapeError, "arr must be a matrix"),
    row("no such arrays", lambda: ones(3, dtype="float6_e2m3fn"), TypeError, "no arrays of dtype float6_e2m3fn"),
    row(
        "ragged numbers", lambda: lax.ragged_dot_general(ones(3, 3), ones(1, 3, 3), jnp.array([3]), np),
        TypeError, "ragged_dot: the dimension numbers must be RaggedDotDimensionNumbers, got module",
    ),
    row("unflatten", lambda: tree.unflatten(3, [1]), TypeError, "tree.unflatten: treedef must be", "got 3 of type int"),
    row("transpose", lambda: tree.transpose(1, 2, 3), TypeError, "tree.transpose: outer_treedef must be"),
    row("map", lambda: tree.map(3, [1]), TypeError, "tree.map: f must be a function, got 3 of type int"),
    row("inline", lambda: jit(square, inline=7), TypeError, "jit: inline must be True or False, got 7 of type int"),
    row("keep_unused", lambda: jit(square, keep_unused="z"), TypeError, "jit: keep_unused must be True or False"),
    row("argnums", lambda: grad(square, argnums=1.0)(1.0), TypeError, "grad: argnums must be an int or a tuple"),
    row("axis_name", lambda: vmap(square, axis_name=[1]), TypeError, "vmap: axis_name must be hashable", "got [1]"),
    row("perm", lambda: mapped(lambda x: lax.ppermute(x, "i", 3)), TypeError, "ppermute: perm must be a list of pairs"),
    row("ddof", lambda: jnp.var(ones(3), ddof="a"), TypeError, "var: ddof must be a number, got 'a' of type str"),
    row("correction", lambda: jnp.std(ones(3), correction="a"), TypeError, "std: correction must be a number"),
    row(
        "scatter", lambda: lax.scatter_add(ones(3), jnp.zeros((1, 1), int), ones(1), 3), TypeError,
        "scatter_add: ", "it was given dimension_numbers=3",
    ),
    row("cho_solve", lambda: linalg.cho_solve(3, ones(3)), TypeError, "cho_solve: c_and_lower must be the pair that"),
    row("lu_solve", lambda: linalg.lu_solve(ones(3), ones(3)), TypeError, "lu_solve: lu_and_piv must be the pair that"),
    row("platforms", lambda: export.export(jit(square), platforms=[]), ValueError, "export: platforms is empty"),
    row("save", lambda: jit(square).lower(1.0).compile().save(3), TypeError, "save: path must be a text or a path"),
    row(
        "reverse", lambda: lax.scan(lambda c, x: (c, x), 0.0, ones(3), reverse="q"), TypeError,
        "scan: reverse must be True or False, got 'q'",
    ),
    row("exponent bits", lambda: lax.reduce_precision(1.0, 99, 3), ValueError, "exponent_bits must be from 1 to 11"),
    row(
        "nonlinear rule", lambda: grad(squared_tangent)(1.0), errors.MissingRule, "stray.py:42",
        "integer_pow is not linear in a tangent",
    ),
    row("name of a function", surrogate, TypeError, "unsupported operand"),
    # no guard: the call is named
    row(
        "large bound", lambda: lax.fori_loop(0, 2**70, lambda i, c: c, 1.0), OverflowError, "fori_loop: ",
        "upper=1180591620717411303424",
    ),
    row(
        "large start", lambda: lax.dynamic_slice(ones(3), (2**70,), (1,)), OverflowError, "dynamic_slice: ",
        "start_indices=(1180591620717411303424,)",
    ),
    row("arange", lambda: jnp.arange(0, 1e30), ValueError, "arange: Maximum allowed size exceeded", "stop=1e+30"),
    row("eye", lambda: jnp.eye("a"), TypeError, "eye: ", "it was given N='a'"),
    row("padding", lambda: lax.pad(ones(3), 0.0, 3), TypeError, "pad: ", "padding_config=3"),
    row("starts", lambda: lax.slice(ones(3), "a", "b"), TypeError, "slice: ", "start_indices='a', limit_indices='b'"),
    row("operands", lambda: lax.concatenate(3, 0), TypeError, "concatenate: ", "operands=3, dimension=0"),
    row("top_k", lambda: lax.top_k(ones(3), "a"), TypeError, "top_k: ", "it was given k='a'"),
    row("roll", lambda: jnp.roll(ones(3), "a"), TypeError, "roll: ", "it was given shift='a'"),
    # an error of the library itself is left as it is
    row("once", lambda: random.normal(random.key(0), "a"), TypeError, "normal: shape must be an int or a tuple"),
    row("own", lambda: jit(lambda x: {}["a"])(1.0), KeyError, "'a'"),
    row("of numpy", lambda: jit(lambda x: np.zeros("a"))(1.0), TypeError, "'str' object cannot be interpreted"),
]
