"""How types say that results are split over explicit axes: the rule of every operation, and the numbers computed."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from math import inf
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.multidevice.split_types import AS_IN_JAX, MORE_THAN_JAX, REFUSED
from xlamini import P, lax, make_mesh, nn, numpy as jnp, random, vmap
from xlamini.core.flags.config import strict_sharding
from xlamini.errors import ShardingTypeError
from xlamini.sharding import AxisType, NamedSharding
from xlamini.tree_util import tree_leaves


@pytest.fixture(autouse=True)
def strict() -> Iterator[None]:
    with strict_sharding(True):
        yield


MESH = make_mesh((2, 4), ("x", "y"), axis_types=(AxisType.Explicit,) * 2)

Row = tuple[str, str, str]


def rows(table: str) -> list[Row]:
    return [tuple(line.rsplit(" | ", 2)) for line in table.split("\n") if line]  # type: ignore[misc]


def name(row: Row) -> str:
    return f"{row[0]} of {row[1]}"


def summed_grad(fun: Callable[[Any], Any], x: Any) -> Any:
    return xlamini.grad(lambda x: fun(x).sum())(x)


NAMES: dict[str, Any] = {
    "G": lax.GatherDimensionNumbers,
    "S": lax.ScatterDimensionNumbers,
    "conv": lax.conv_general_dilated,
    "fused": lambda x, y: x + y + x * y,
    "grad": summed_grad,
    "inf": inf,
    "jnp": jnp,
    "lax": lax,
    "linalg": lax.linalg,
    "nn": nn,
    "pairs": lambda x, y: (x[0] + y[0], x[1] + y[1]),
    "random": random,
    "vmap": vmap,
    "window": lax.reduce_window,
}
DTYPES = {"f32": "float32", "i32": "int32", "u32": "uint32", "i16": "int16", "c64": "complex64", "bool": "bool"}


@cache
def function(expression: str) -> Callable[..., Any]:
    return eval(f"lambda a=None, b=None, c=None: {expression}", NAMES)


def parsed(text: str) -> tuple[str, list[int], P]:
    """The dtype, shape and spec of a type such as `f32[8@x,16@(x,y)]`."""
    found = re.fullmatch(r"(\w+)\[(.*)\]", text)
    assert found, text
    sizes = [each.partition("@") for each in re.split(r",(?![^(]*\))", found[2]) if each]
    names = [tuple(mark.strip("()").split(",")) if mark else None for _, _, mark in sizes]
    return found[1], [int(size) for size, _, _ in sizes], P(*names)


def numbers(dtype: str, shape: Sequence[int], seed: int) -> Any:
    """Keys, distinct small integers, or random numbers, of square matrices symmetric and positive definite ones."""
    if dtype == "key":
        return random.split(random.key(seed), tuple(shape)) if shape else random.key(seed)
    if DTYPES[dtype].startswith(("int", "uint")):
        return np.asarray((np.arange(np.prod(shape)) * 3 + 1) % 4, DTYPES[dtype]).reshape(shape)
    x = np.asarray(np.random.RandomState(seed).random_sample(shape))
    if dtype == "bool":
        return x > 0.5
    if dtype == "f32" and list(shape[-2:]) == [4, 4]:
        x = x + np.swapaxes(x, -1, -2) + 8 * np.eye(4)
    return np.asarray(x, DTYPES[dtype])


def whole(arguments: str) -> list[Any]:
    return [numbers(*parsed(text)[:2], seed) for seed, text in enumerate(arguments.split())]


def divided(arguments: str) -> list[Any]:
    shardings = [NamedSharding(MESH, parsed(text)[2]) for text in arguments.split()]
    return [xlamini.device_put(x, s) for x, s in zip(whole(arguments), shardings, strict=True)]


def types(results: Any) -> str:
    return ", ".join(x.aval.str_short(short_dtypes=False) for x in tree_leaves(results))


def words(x: Any) -> np.ndarray:
    return np.asarray(random.key_data(x) if x.dtype.name.startswith("key") else x)


EVERY = [*rows(AS_IN_JAX), *rows(MORE_THAN_JAX)]
AT_ONCE = 10


@pytest.mark.parametrize("row", EVERY, ids=name)
def test_results_are_split_as_operands_are(row: Row) -> None:
    expression, arguments, expected = row
    with xlamini.set_mesh(MESH):
        traced = xlamini.make_jaxpr(function(expression))(*divided(arguments))
    assert ", ".join(a.str_short(short_dtypes=False) for a in traced.out_avals) == expected


@pytest.mark.slow
@pytest.mark.parametrize("start", range(0, len(EVERY), AT_ONCE))
def test_numbers_are_those_of_one_device(start: int) -> None:
    """Several rows make up one program, as each compilation takes its time."""
    some = EVERY[start : start + AT_ONCE]

    def program(operands: Sequence[Any]) -> list[Any]:
        return [function(row[0])(*xs) for row, xs in zip(some, operands, strict=True)]

    with xlamini.set_mesh(MESH):
        found = xlamini.jit(program)([divided(arguments) for _, arguments, _ in some])
    alone = xlamini.jit(program)([whole(arguments) for _, arguments, _ in some])
    for row, x, y in zip(some, found, alone, strict=True):
        assert types(x) == row[2], name(row)
        for one, other in zip(tree_leaves(x), tree_leaves(y), strict=True):
            np.testing.assert_allclose(words(one), words(other), rtol=2e-5, atol=2e-5, err_msg=name(row))


@pytest.mark.parametrize("row", rows(AS_IN_JAX)[::12], ids=name)
def test_results_are_split_where_nothing_is_traced(row: Row) -> None:
    with xlamini.set_mesh(MESH):
        assert types(function(row[0])(*divided(row[1]))) == row[2]


@pytest.mark.parametrize("row", rows(REFUSED), ids=name)
def test_what_cannot_stay_split_is_refused(row: Row) -> None:
    with xlamini.set_mesh(MESH), pytest.raises(ShardingTypeError, match=re.escape(row[2])):
        xlamini.make_jaxpr(function(row[0]))(*divided(row[1]))


def test_fixes_are_named() -> None:
    with xlamini.set_mesh(MESH), pytest.raises(ShardingTypeError, match="the operand to a spec without"):
        lax.sort(*divided("f32[8@x]"))
