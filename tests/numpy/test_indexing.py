"""x[index], iteration, take and put, beside NumPy; and what is said of an index that does not fit."""
from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.support.index_table import (
    ADVANCED,
    BASIC,
    MASK,
    ROWS,
    each_index,
    named,
    numbers,
    put_on_device,
    summed,
    traced,
)
from xlamini import grad, jit, numpy as jnp, vmap
from xlamini.core.flags.jax_flags import check_static_indices
from xlamini.numpy.indexing import operators


@pytest.fixture(autouse=True)
def checked() -> Iterator[None]:
    with xlamini.enable_checks(True):
        yield


# --- reading


@pytest.mark.sample(3)
@each_index
def test_getitem_equals_numpy(index: Any) -> None:
    x = numbers(3, 4, 5)
    expected = x[index]
    for found in (put_on_device(x)[index], jit(lambda x: x[index])(x)):
        assert found.shape == np.shape(expected) and found.dtype == x.dtype
        np.testing.assert_array_equal(found, expected)


@each_index
def test_getitem_with_traced_indices_equals_numpy(index: Any) -> None:
    x = numbers(3, 4, 5)
    rebuilt, leaves = traced(index)
    found = jit(lambda x, *leaves: x[rebuilt(*leaves)])(x, *leaves)
    np.testing.assert_array_equal(found, x[index])


@pytest.mark.sample(6)
@each_index
def test_gradient_of_getitem_counts_how_often_an_element_is_read(index: Any) -> None:
    x = numbers(3, 4, 5)
    rebuilt, leaves = traced(index)
    weights = numbers(*x[index].shape)
    expected = np.zeros_like(x)
    np.add.at(expected, index, weights)
    np.testing.assert_array_equal(grad(lambda x: summed(x[index] * weights))(x), expected)
    of_traced = jit(grad(lambda x, *leaves: summed(x[rebuilt(*leaves)] * weights)))
    np.testing.assert_array_equal(of_traced(x, *leaves), expected)


@pytest.mark.sample(4)
@pytest.mark.parametrize("index", [*BASIC, *ADVANCED], ids=named)
def test_vmap_of_getitem_equals_a_loop(index: Any) -> None:
    x = numbers(2, 3, 4, 5)
    rebuilt, leaves = traced(index)
    batched = [np.stack([leaf, np.where(leaf > 0, leaf - 1, leaf)]) for leaf in leaves]
    found = vmap(lambda x, *leaves: x[rebuilt(*leaves)])(x, *batched)
    expected = [x[b][rebuilt(*(leaf[b] for leaf in batched))] for b in range(2)]
    np.testing.assert_array_equal(found, np.stack(expected))
    if leaves:
        shared = vmap(lambda *leaves: put_on_device(x[0])[rebuilt(*leaves)])(*batched)
        expected = [x[0][rebuilt(*(leaf[b] for leaf in batched))] for b in range(2)]
        np.testing.assert_array_equal(shared, np.stack(expected))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float16", "complex64"])
def test_getitem_keeps_the_dtype(dtype: str) -> None:
    x = put_on_device(numbers(3, 4).astype(dtype))
    assert {x[0].dtype, x[ROWS].dtype, x[MASK].dtype, x[:2].dtype, x[None, True].dtype} == {np.dtype(dtype)}


def test_an_index_of_one_form_is_compiled_once() -> None:
    x = put_on_device(numbers(10, 3))
    programs = operators._reader.cache_info().currsize
    for start in range(5):
        np.testing.assert_array_equal(x[start : start + 4, start % 3], numbers(10, 3)[start : start + 4, start % 3])
    assert operators._reader.cache_info().currsize <= programs + 1


def test_traced_indices_out_of_bounds_are_moved_inside() -> None:
    x = numbers(5)
    assert jit(lambda x, i: x[i])(x, 9) == 5
    np.testing.assert_array_equal(jit(lambda x, i: x[i])(x, np.array([7, -9])), [5, 1])


def test_a_mask_may_depend_on_values_where_they_are_known() -> None:
    np.testing.assert_array_equal(grad(lambda x: summed(x[x > 2] * 3))(numbers(4)), [0, 0, 3, 3])


# --- iteration


@pytest.mark.parametrize("length", [0, 1, 5, 40])
def test_iteration(length: int) -> None:
    x = numbers(length, 2)
    rows = list(put_on_device(x))
    np.testing.assert_array_equal(np.reshape(rows, (length, 2)), x)
    assert len(put_on_device(x)) == length
    assert jit(lambda x: [len(x), *x])(x)[0] == length


def test_unpacking() -> None:
    a, b = jit(lambda x: [row * 2 for row in x])(numbers(2, 2))
    np.testing.assert_array_equal([a, b], 2 * numbers(2, 2))


def test_a_scalar_has_nothing_to_iterate() -> None:
    with pytest.raises(TypeError, match="iteration over a 0-d array"):
        iter(put_on_device(np.float32(1)))
    with pytest.raises(TypeError, match="iteration over a 0-d array"):
        jit(list)(1.0)
    with pytest.raises(TypeError, match="len\\(\\) of unsized object"):
        jit(lambda x: len(x))(1.0)


# --- take and put


@pytest.mark.parametrize(("axis", "mode"), list(itertools.product([None, 0, 1, -1], [None, "clip", "wrap"])))
def test_take(axis: int | None, mode: str | None) -> None:
    x, indices = numbers(3, 4), np.array([[0, 2], [1, 0]]) if mode is None else np.array([-3, 20, 1])
    expected = np.take(x, indices, axis, mode=mode or "raise")  # type: ignore[call-overload]
    np.testing.assert_array_equal(jnp.take(x, indices, axis, mode=mode), expected)
    np.testing.assert_array_equal(jit(lambda x, i: jnp.take(x, i, axis, mode=mode))(x, indices), expected)


def test_take_fills() -> None:
    np.testing.assert_array_equal(jnp.take(numbers(3), np.array([-1, 3, -4])), [3, np.nan, np.nan])
    np.testing.assert_array_equal(jnp.take(numbers(3), 5, fill_value=-1), -1)
    assert jnp.take(put_on_device(numbers(3)), 1) == 2


@pytest.mark.parametrize(("shape", "axis"), [((3, 2), 1), ((3, 1), -1), ((1, 4), 0), ((2, 4), 0), ((3, 0), 1)])
def test_along_an_axis(shape: tuple[int, ...], axis: int) -> None:
    x = numbers(3, 4)
    indices = (np.arange(np.prod(shape)).reshape(shape) % x.shape[axis]) - 1
    expected = np.take_along_axis(x, indices, axis)
    np.testing.assert_array_equal(jnp.take_along_axis(x, indices, axis), expected)
    written = x.copy()
    np.put_along_axis(written, indices, -1, axis)
    np.testing.assert_array_equal(jnp.put_along_axis(x, indices, -1, axis, inplace=False), written)
    gradient = grad(lambda x: summed(jnp.take_along_axis(x, indices, axis)))(x)
    assert np.asarray(gradient).sum() == expected.size


def test_put() -> None:
    for mode in ("clip", "wrap"):
        expected = numbers(2, 3)
        np.put(expected, [1, 8, 0], [7, 8], mode=mode)
        found = jnp.put(numbers(2, 3), np.array([1, 8, 0]), np.array([7.0, 8.0], np.float32), mode, inplace=False)
        np.testing.assert_array_equal(found, expected)
    with pytest.raises(ValueError, match="pass inplace=False"):
        jnp.put(numbers(3), 0, 1)


# --- what is said of an index that does not fit

ERRORS = {
    "x[3]": (IndexError, "index 3 is out of bounds for axis 0 with size 3"),
    "x[-4]": (IndexError, "index -4 is out of bounds for axis 0 with size 3"),
    "x[0, 4]": (IndexError, "index 4 is out of bounds for axis 1 with size 4"),
    "x[np.array([0, 5])]": (IndexError, "index 5 is out of bounds for axis 0 with size 3"),
    "x[:, put_on_device(np.array([-5]))]": (IndexError, "index -5 is out of bounds for axis 1 with size 4"),
    "x[put_on_device(np.array(8))]": (IndexError, "index 8 is out of bounds for axis 0 with size 3"),
    "x.at[3].set(0)": (IndexError, "index 3 is out of bounds for axis 0 with size 3"),
    "jit(lambda x: x[3])(x)": (IndexError, "index 3 is out of bounds for axis 0 with size 3"),
    "x[0, 0, 0]": (IndexError, "too many indices: an array of shape (3, 4) has 2 axes, but 3 are indexed"),
    "x[0][0][0]": (IndexError, "too many indices: an array of shape () has 0 axes"),
    "x[..., 0, ...]": (IndexError, "an index can only have a single ellipsis"),
    "x[[0, 1]]": (TypeError, "a list is no index"),
    "x[1.0]": (TypeError, "index 0 is 1.0 of type float"),
    "x['a']": (TypeError, "index 0 is 'a' of type str"),
    "x[0, object]": (IndexError, "index 1 is <class 'object'> of type type"),
    "x[np.ones(2)]": (TypeError, "an index array holds integers"),
    "x[0.5:2]": (TypeError, "has a bound that is no integer"),
    "x[::0]": (ValueError, "slice step cannot be zero"),
    "x[np.array([True, False])]": (IndexError, "a boolean index of shape (2,) does not fit: from axis 0 on"),
    "x[0, np.ones(3, bool)]": (IndexError, "a boolean index of shape (3,) does not fit: from axis 1 on"),
    "x[np.array([0, 1]), np.array([0, 1, 2])]": (IndexError, "shape mismatch: integer arrays of shapes (2,) (3,)"),
    "jit(lambda x: x[x > 3])(x)": (xlamini.errors.NonConcreteBooleanIndexError, "jnp.where(mask, x, 0)"),
    "jit(lambda x, i: x[i : i + 2])(x, 1)": (IndexError, "xlamini.ds(start, size)"),
    "x.at[0].set('a')": (TypeError, "operand 0 must be an array or a number, got str"),
    "x.at[0].set(1, sorted=True)": (TypeError, "unexpected keyword argument 'sorted'"),
    "jnp.take(x, np.ones(2))": (TypeError, "take: indices must be integers"),
    "jnp.take(x, 0, mode='raise')": (NotImplementedError, "a compiled program cannot raise"),
    "jnp.take_along_axis(x, np.array([0]), 0)": (TypeError, "must have as many axes as the array"),
    "jnp.take_along_axis(x, np.zeros((2, 2), int), 0)": (TypeError, "must have equal sizes, or 1, in all axes"),
}


@pytest.mark.parametrize("program", ERRORS)
def test_errors(program: str) -> None:
    kind, text = ERRORS[program]
    names = {**globals(), "x": put_on_device(numbers(3, 4))}
    with pytest.raises(kind, match=re.escape(text)):
        eval(program, names)


OUT_OF_BOUNDS = {
    "x[5]": [8, 9, 10, 11],
    "x[-5]": [0, 1, 2, 3],
    "x[1, 7]": 7,
    "x[np.array([0, 5])]": [[0, 1, 2, 3], [8, 9, 10, 11]],
    "x[jnp.array(3), 1:3]": [9, 10],
    "x[jnp.array([0, 9]), jnp.array([-9, 1])]": [0, 9],
    "jit(lambda x: x[:, 4])(x)": [3, 7, 11],
    "x.at[5, 0].get()": 8,
    "x.at[5].set(1).sum()": 66,
    "x.at[-4, 1:].multiply(3).sum()": 66,
    "x.at[np.array([2, 3]), 0].add(1)[2:]": [[9, 9, 10, 11]],
    "x.at[0, 4].apply(jnp.cos).sum()": 66,
    "grad(lambda x: x[2, 9])(x)[2]": [0, 0, 0, 1],
}
"""Values of JAX 0.10.2, in which the flag is off."""


@pytest.mark.parametrize("program", OUT_OF_BOUNDS)
def test_unchecked_indices_are_clamped_and_updates_dropped(program: str) -> None:
    names = {**globals(), "x": jnp.arange(12.0).reshape(3, 4)}
    with check_static_indices(False):
        np.testing.assert_array_equal(eval(program, names), OUT_OF_BOUNDS[program])
