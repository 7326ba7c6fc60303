"""Python ints that the dtype beside them cannot hold: OverflowError, as in NumPy; comparisons are by value."""
from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import lax, random
from xlamini.staging import composite

BYTES = np.arange(4, dtype=np.uint8)
REFUSED: dict[str, Callable[[Any], Any]] = {
    "x + 300": lambda x: x + 300,
    "300 - x": lambda x: 300 - x,
    "x & -1": lambda x: x & -1,
    "x % 300": lambda x: x % 300,
    "x ** y": lambda x: 300**x,
    "add": lambda x: jnp.add(x, 300),
    "floor_divide": lambda x: jnp.floor_divide(x, -3),
    "maximum": lambda x: jnp.maximum(x, 300),
    "where": lambda x: jnp.where(x > 1, x, 300),
    "select": lambda x: jnp.select([x > 1], [x], 300),
    "select from a number": lambda x: jnp.select([x > 1], [300], x),
    "select of rows": lambda x: jnp.select(jnp.stack([x > 1, x > 2]), jnp.stack([x, x]), 300),
    "piecewise": lambda x: jnp.piecewise(x, [x > 1], [300, x]),
    "r_": lambda x: jnp.r_[x, 300],
    "c_": lambda x: jnp.c_[x[0], 300],
    "clip": lambda x: jnp.clip(x, -1, 2),
    "pad": lambda x: jnp.pad(x, 1, constant_values=300),
    "full_like": lambda x: jnp.full_like(x, 300),
    "at": lambda x: x.at[0].set(300),
    "lax.add": lambda x: lax.add(x, 300),
    "append": lambda x: jnp.append(x, 300),
    "insert": lambda x: jnp.insert(x, 1, -1),
    "put": lambda x: jnp.put(x, jnp.array([0]), 300, inplace=False),
    "put_along_axis": lambda x: jnp.put_along_axis(x, jnp.array([0]), 300, 0, inplace=False),
    "fill_diagonal": lambda x: jnp.fill_diagonal(jnp.zeros((2, 2), x.dtype), 300, inplace=False),
    "place": lambda x: jnp.place(x, x > 1, 300, inplace=False),
    "stack": lambda x: jnp.stack([x[0], 300]),
    "hstack": lambda x: jnp.hstack([x, 300]),
    "block": lambda x: jnp.block([x, 300]),
    "choose": lambda x: jnp.choose(jnp.array([0, 1, 0, 1]), [x, 300], mode="clip"),
    "diff": lambda x: jnp.diff(x, prepend=300),
    "ediff1d": lambda x: jnp.ediff1d(x, to_end=300),
    "dot": lambda x: jnp.dot(x, 300),
    "inner": lambda x: jnp.inner(-1, x),
    "outer": lambda x: jnp.outer(x, 300),
    "kron": lambda x: jnp.kron(x, 300),
    "tensordot": lambda x: jnp.tensordot(x, 300, 0),
    "initial": lambda x: jnp.max(x, initial=300),
    "initial of a product": lambda x: jnp.prod(x, initial=-1, dtype=jnp.uint8),
    "add.at": lambda x: jnp.add.at(x, 0, 300, inplace=False),
}
COMPARISONS = [operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge]


@pytest.mark.parametrize("name", REFUSED)
def test_arithmetic_raises(name: str) -> None:
    for call in (REFUSED[name], xlamini.jit(REFUSED[name]), xlamini.vmap(REFUSED[name], axis_size=1, in_axes=None)):
        with pytest.raises(OverflowError, match=r"(300|-1|-3).* uint8"):
            call(jnp.asarray(BYTES))


@pytest.mark.parametrize("compare", COMPARISONS)
@pytest.mark.parametrize("number", [-1, 255, 256, 300, 2**40, -(2**40)])
def test_comparisons_are_by_value(compare: Callable[..., Any], number: int) -> None:
    x, ours = jnp.asarray(BYTES), getattr(jnp, {"eq": "equal", "ne": "not_equal"}.get(compare.__name__, "less"))
    for call in (compare, xlamini.jit(compare, static_argnums=1)):
        np.testing.assert_array_equal(call(x, number), compare(BYTES.astype(object), number).astype(bool))
    np.testing.assert_array_equal(xlamini.jit(lambda v: compare(number, v))(x), compare(number, BYTES.astype(object)))
    if compare.__name__ in ("eq", "ne", "lt"):
        np.testing.assert_array_equal(ours(x, number), compare(BYTES.astype(object), number).astype(bool))


def test_numbers_within_keep_working() -> None:
    assert jnp.uint32(5) ^ 0xFFFFFFFF == np.uint32(5) ^ np.uint32(0xFFFFFFFF)
    assert xlamini.jit(lambda v: v ^ 0xFFFFFFFF)(jnp.uint32(5)) == 0xFFFFFFFA
    assert (jnp.uint8(0) - 1).tolist() == 255
    assert (jnp.uint8(200) + 100).tolist() == 44  # a sum that wraps, of two numbers that do not
    assert jnp.full((), 255, jnp.uint8) == 255
    assert jnp.take(jnp.asarray(BYTES), 300, mode="clip") == 3
    assert jnp.roll(jnp.asarray(BYTES), 301).tolist() == [3, 0, 1, 2]
    assert jnp.sum(jnp.asarray(BYTES), axis=-1, initial=7) == 13
    assert jnp.hstack([jnp.asarray(BYTES), 300], dtype=np.int32).tolist() == [0, 1, 2, 3, 300]
    assert jnp.append(jnp.asarray([True]), 300).tolist() == [1, 300]
    assert jnp.append(jnp.arange(2.0), 300).tolist() == [0, 1, 300]


def test_made_arrays() -> None:
    for made in (lambda: jnp.full((), 300, jnp.uint8), lambda: jnp.full((99, 99), -1, jnp.uint8)):
        with pytest.raises(OverflowError, match="does not fit in uint8"):
            made()
    with pytest.raises(OverflowError, match="randint: maxval is 300, but the dtype holds 0 to 255"):
        random.randint(random.key(0), (2,), 0, 300, "uint8")


@pytest.mark.parametrize("before", [None, 5, jnp.int32(5)], ids=str)
def test_an_int_is_compared_whatever_was_called_before(before: Any) -> None:
    """C++ keeps a program for each signature, and an int has that of a weakly typed array."""
    x, maximum = jnp.asarray(BYTES), composite()(lambda x, y: jnp.maximum(x, y))
    for first in () if before is None else (before, jnp.asarray(5)):
        assert maximum(x, first).tolist() == [5, 5, 5, 5]
    assert maximum(jnp.ones(2), 300).tolist() == [300, 300]
    with pytest.raises(OverflowError, match="300 does not fit in uint8"):
        maximum(x, 300)
    assert maximum(x, 2).tolist() == [2, 2, 2, 3]


@pytest.mark.parametrize("number", [100, -9])
def test_numbers_beyond_four_bits_and_beside_scalars_of_numpy(number: int) -> None:
    x = jnp.ones(2, "int4")
    others = [lambda: jnp.where(x > 0, x, number), lambda: jnp.add(x, number)]
    for call in (lambda: x + number, lambda: number - x, *others):
        with pytest.raises(OverflowError, match="does not fit in int4"):
            call()
    assert (x < number).tolist() == [number > 0] * 2
    with pytest.raises(OverflowError, match="300 does not fit in uint8"):
        jnp.maximum(np.uint8(3), 300)
