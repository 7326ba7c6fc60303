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
    "clip": lambda x: jnp.clip(x, -1, 2),
    "pad": lambda x: jnp.pad(x, 1, constant_values=300),
    "full_like": lambda x: jnp.full_like(x, 300),
    "at": lambda x: x.at[0].set(300),
    "lax.add": lambda x: lax.add(x, 300),
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
