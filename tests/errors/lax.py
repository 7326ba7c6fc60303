"""Functions of lax given what they cannot take."""
from __future__ import annotations

from typing import Any

from tests.support.error_rows import ones, row
from xlamini import lax, make_jaxpr, numpy as jnp, vmap

ROWS_OF = lax.RaggedDotDimensionNumbers((([1], [1]), ([], [])), [0], [])


def mapped(fun: Any) -> Any:
    return vmap(fun, axis_name="i")(ones(2, 3))


ROWS = [
    row("ranks", lambda: lax.add(ones(3), ones(2, 3)), TypeError, "add", "float32[3], float32[2,3]", "broadcast_to"),
    row("sizes", lambda: lax.mul(ones(2, 2), ones(2, 3)), TypeError, "mul", "float32[2,2], float32[2,3]"),
    row("accuracy", lambda: lax.exp(1.0, accuracy="high"), TypeError, "exp: accuracy", "'high'", "lax.Tolerance("),
    row("tolerance", lambda: lax.Tolerance(-1.0), ValueError, "Tolerance", "negative"),
    row("mulhi", lambda: lax.mulhi(1.5, 2.5), TypeError, "mulhi does not accept dtype float32"),
    row("reshape", lambda: lax.reshape(ones(2, 3), (6,), (0, 0)), ValueError, "permutation (0, 0)", "f32[2,3]"),
    row("stack", lambda: lax.stack([ones(2), ones(3)]), ValueError, "stack", "float32[2], float32[3]"),
    row("stack dtypes", lambda: lax.stack([ones(2), jnp.arange(2)]), TypeError, "stack", "float32[2], int32[2]"),
    row("stack axis", lambda: lax.stack([ones(2)], 3), ValueError, "stack: axis 3", "-2 to 1"),
    row("stack of nothing", lambda: lax.stack([]), ValueError, "stack", "at least one array"),
    row("unstack", lambda: lax.unstack(1.0), ValueError, "unstack: axis 0", "a scalar has none"),
    row("tile", lambda: lax.tile(ones(2, 3), (2,)), TypeError, "tile: reps", "float32[2,3]", "(2,)"),
    row("full", lambda: lax.full((2,), ones(2)), TypeError, "full: fill_value", "float32[2]", "broadcast_to"),
    row("full shape", lambda: lax.full((-1,), 0), TypeError, "full", "(-1,)"),
    row("full_like", lambda: lax.full_like("x", 0), TypeError, "full_like", "str"),
    row("broadcast_shapes", lambda: lax.broadcast_shapes((2,), (3,)), ValueError, "(2,), (3,)"),
    row("broadcast_like", lambda: lax.broadcast_like(ones(2, 3), 1.0), ValueError, "(2, 3)", "()"),
    row("collapse", lambda: lax.collapse(ones(2, 3, 4), 2, 1), ValueError, "collapse", "2 to 1"),
    row("dtype", lambda: lax.dtype(None), ValueError, "dtype", "None"),
    row("index_take", lambda: lax.index_take(ones(2, 3), (jnp.arange(2),), (1, 0)), TypeError, "index_take", "(1, 0)"),
    row("index_take axes", lambda: lax.index_take(ones(2), (jnp.arange(2),), (3,)), ValueError, "axes (3,)"),
    row("preset", lambda: lax.dot(ones(2), ones(2), precision="ANY_F8_ANY_F8_F32"), ValueError, "float32", "8 bits"),
    row("algorithm", lambda: lax.dot(ones(2), ones(2), precision=lax.DotAlgorithm("int8", "int8", "int8")), TypeError),
    row("ragged_dot", lambda: lax.ragged_dot(ones(4, 3), ones(2, 3, 2), ones(2)), TypeError, "group_sizes", "float32"),
    row(
        "ragged groups",
        lambda: lax.ragged_dot(ones(4, 3), ones(2, 3, 2), jnp.arange(3)),
        ValueError,
        "group_sizes has shape (3,)",
        "(2,)",
    ),
    row(
        "ragged numbers",
        lambda: lax.ragged_dot_general(ones(4, 3), ones(2, 3, 2), jnp.arange(2), ROWS_OF),
        ValueError,
        "rhs_group_dimensions is ()",
        "one dimension of rhs",
    ),
    row(
        "scaled_dot",
        lambda: lax.scaled_dot(ones(4, 6), ones(6, 4), lhs_scale=ones(4, 4)),
        ValueError,
        "lhs_scale of shape (4, 4)",
        "(4, 6)",
        "divide",
    ),
    row("after_all", lambda: lax.after_all(ones(2)), TypeError, "after_all", "float32[2]", "create_token"),
    row("rng_uniform", lambda: lax.rng_uniform(ones(2), 1.0, (2,)), ValueError, "rng_uniform", "float32[2]"),
    row("rng_uniform dtypes", lambda: lax.rng_uniform(0, 1.0, (2,)), TypeError, "int32[] and float32[]", ".astype"),
    row("composite", lambda: lax.composite(lambda x, n: x, "a.b")(1.0, n=ones(2)), TypeError, "'a.b'", "attribute n"),
    row("composite name", lambda: lax.composite(lambda x: x, 3), TypeError, "composite: name", "3"),
    row("sharding", lambda: lax.with_sharding_constraint(ones(2), 3), TypeError, "with_sharding_constraint", "int"),
    row("shardings", lambda: lax.with_sharding_constraint([ones(2)], {}), ValueError, "with_sharding_constraint"),
    row("out_sharding", lambda: lax.broadcast(ones(2), (2,), out_sharding=3), TypeError, "broadcast: out_", "got 3"),
    row("pcast", lambda: mapped(lambda x: lax.pcast(x, "i", to="x")), ValueError, "pcast: to", "'x'"),
    row("pcast axis", lambda: lax.pcast(1.0, "i", to="varying"), NameError, "i"),
    row(
        "precv",
        lambda: mapped(lambda x: lax.precv(lax.psend(x, "i", [(0, 1)]), ones(2), "i", [(0, 1)])),
        ValueError,
        "precv",
        "float32[2]",
        "float32[3]",
    ),
    row(
        "ragged_all_to_all",
        lambda: mapped(lambda x: lax.ragged_all_to_all(x, x, *[jnp.arange(3)] * 4, axis_name="i")),
        ValueError,
        "ragged_all_to_all",
        "multiple of 2",
    ),
    row("bits", lambda: make_jaxpr(lambda: lax.rng_bit_generator(ones(4), (2,)))(), TypeError, "rng_bit_generator"),
]
