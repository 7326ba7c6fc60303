"""x.at[index] beside NumPy's assignment and the `at` methods of its ufuncs."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.support.index_table import (
    MASK,
    MATRIX_MASK,
    ROWS,
    Array,
    each_index,
    named,
    numbers,
    put_on_device,
    summed,
    traced,
)
from xlamini import grad, jit


@pytest.fixture(autouse=True)
def checked() -> Iterator[None]:
    with xlamini.enable_checks(True):
        yield


UFUNCS = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "power": np.power,
    "min": np.minimum,
    "max": np.maximum,
}


def values_for(x: Array, index: Any) -> Array:
    return (1 + np.arange(x[index].size, dtype=x.dtype) % 3).reshape(x[index].shape)


@pytest.mark.sample(5)
@each_index
def test_at_set_equals_assignment(index: Any) -> None:
    x = numbers(3, 4, 5)
    expected = x.copy()
    expected[index] = 7
    rebuilt, leaves = traced(index)
    staged = jit(lambda x, *leaves: x.at[rebuilt(*leaves)].set(7))(x, *leaves)
    for found in (put_on_device(x).at[index].set(7), staged):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.sample(5)
@each_index
def test_at_add_equals_numpy(index: Any) -> None:
    x = numbers(3, 4, 5)
    values, expected = values_for(x, index), x.copy()
    np.add.at(expected, index, values)
    rebuilt, leaves = traced(index)
    staged = jit(lambda x, v, *leaves: x.at[rebuilt(*leaves)].add(v))(x, values, *leaves)
    for found in (put_on_device(x).at[index].add(values), staged):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.sample(5)
@pytest.mark.parametrize("how", UFUNCS)
@pytest.mark.parametrize(
    "index", [1, slice(1, 3), slice(None, None, -2), ROWS, (ROWS, slice(0, 2)), MASK, MATRIX_MASK, ...], ids=named
)
def test_at_methods_equal_numpy(how: str, index: Any) -> None:
    x = numbers(3, 4)
    values, expected = values_for(x, index), x.copy()
    UFUNCS[how].at(expected, index, values)

    def update(x: Any, v: Any) -> Any:
        return getattr(x.at[index], how)(v)

    for found in (update(put_on_device(x), values), jit(update)(x, values)):
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    scalar = x.copy()
    UFUNCS[how].at(scalar, index, np.float32(2))
    np.testing.assert_allclose(update(put_on_device(x), 2.0), scalar, rtol=1e-6)


@pytest.mark.sample(6)
@each_index
def test_gradient_of_at_set(index: Any) -> None:
    x = numbers(3, 4, 5)
    if len(np.unique(x[index])) < x[index].size:
        pytest.skip("which of several values wins is not fixed")
    kept = np.ones_like(x)
    kept[index] = 0
    weights = numbers(3, 4, 5)
    of_x, of_values = grad(lambda x, v: summed(x.at[index].set(v) * weights), (0, 1))(x, values_for(x, index))
    np.testing.assert_array_equal(of_x, kept * weights)
    np.testing.assert_array_equal(of_values, weights[index])


def test_gradient_of_repeated_set_goes_to_the_value_that_won() -> None:
    x, values = numbers(3), np.array([5, 6, 7], np.float32)

    def update(x: Any, v: Any) -> Any:
        return x.at[np.array([1, 1, 0])].set(v)

    out = np.asarray(update(put_on_device(x), values))
    of_x, of_values = grad(lambda x, v: summed(update(x, v)), (0, 1))(x, values)
    np.testing.assert_array_equal(of_x, [0, 0, 1])
    np.testing.assert_array_equal(of_values, [out[1] == 5, out[1] == 6, 1])


def test_mul_at_indices_that_may_repeat_has_no_derivative_in_the_values() -> None:
    def loss(v: Any, unique: bool) -> Any:
        return summed(put_on_device(numbers(3)).at[ROWS[:2]].multiply(v, unique_indices=unique))

    np.testing.assert_array_equal(grad(lambda v: loss(v, True))(np.ones(2, np.float32)), [3, 1])
    with pytest.raises(NotImplementedError, match="unique_indices=True"):
        grad(lambda v: loss(v, False))(np.ones(2, np.float32))


def test_apply() -> None:
    x = put_on_device(numbers(4))
    np.testing.assert_array_equal(x.at[1:3].apply(lambda e: e * e), [1, 4, 9, 4])
    np.testing.assert_array_equal(x.at[np.array([0, 0])].apply(lambda e: e * 3), [9, 2, 3, 4])
    np.testing.assert_array_equal(jit(lambda x: x.at[np.array([0, 0, 2])].apply(lambda e: e * 3))(x), [9, 2, 9, 4])
    np.testing.assert_array_equal(grad(lambda x: summed(x.at[1:3].apply(lambda e: e * e)))(numbers(4)), [1, 4, 6, 1])
    with pytest.raises(TypeError, match="takes a function"):
        x.at[0].apply(3)


def test_a_traced_mask_with_one_value_is_a_choice() -> None:
    found = jit(lambda x: (x.at[x > 2].set(0), x.at[x > 2].add(1.0), x.at[x > 2].divide(2)))(numbers(4))
    np.testing.assert_array_equal(found, [[1, 2, 0, 0], [1, 2, 4, 5], [1, 2, 1.5, 2]])


def test_values_broadcast() -> None:
    x = put_on_device(numbers(2, 3))
    np.testing.assert_array_equal(x.at[:, 1:].set(np.array([[8], [9]])), [[1, 8, 8], [4, 9, 9]])
    np.testing.assert_array_equal(x.at[0].set([[7, 8, 9]]), [[7, 8, 9], [4, 5, 6]])
    with pytest.raises(TypeError, match=r"a value of shape \(2,\) does not broadcast to the shape \(3,\)"):
        x.at[0].set(np.ones(2))


# --- dtypes of updates


@pytest.mark.parametrize(
    ("dtype", "value"),
    [("float32", 1), ("float32", True), ("int32", np.int8(3)), ("complex64", 1.5), ("bfloat16", 2.0)],
)
def test_the_dtype_stays(dtype: str, value: Any) -> None:
    x = xlamini.device_put(numbers(3)).astype(dtype) if dtype == "bfloat16" else put_on_device(numbers(3).astype(dtype))
    for how in ("set", "add", "multiply", "max"):
        if not (how == "max" and dtype == "complex64"):
            assert getattr(x.at[1], how)(value).dtype == dtype


def test_values_that_do_not_fit_the_dtype_are_cast_with_a_warning() -> None:
    x = put_on_device(numbers(3, dtype=np.int32))
    for how, expected in (("set", 2), ("add", 4), ("multiply", 5)):
        with pytest.warns(FutureWarning, match=f"x.at\\[index\\].{how}: values of dtype float32 are cast to int32"):
            found = getattr(x.at[1], how)(2.5)
        assert found.dtype == np.int32 and found[1] == expected


def test_division_of_integers_gives_floats() -> None:
    found = put_on_device(numbers(3, dtype=np.int32)).at[1].divide(4)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, [1, 0.5, 3])


def test_weak_type_stays() -> None:
    x = jit(lambda: [1.0])()[0]
    assert x.weak_type and x.at[...].set(np.float32(2)).weak_type and x[None].weak_type


# --- modes

OUT = np.array([0, 7, -9, -1])


def test_modes_of_get() -> None:
    x = put_on_device(numbers(3))

    def get(**options: Any) -> Array:
        return np.asarray(x.at[OUT].get(**options))

    np.testing.assert_array_equal(get(mode="clip"), [1, 3, 1, 3])
    np.testing.assert_array_equal(get(mode="fill"), [1, np.nan, np.nan, 3])
    np.testing.assert_array_equal(get(mode="fill", fill_value=5), [1, 5, 5, 3])
    np.testing.assert_array_equal(get(mode="fill", wrap_negative_indices=False), [1, np.nan, np.nan, np.nan])
    np.testing.assert_array_equal(get(mode="clip", wrap_negative_indices=False), [1, 3, 1, 1])
    assert x.at[7].get(mode="clip") == 3 and np.isnan(x.at[7].get(mode="fill")) and x.at[2].get(mode="fill") == 3
    assert x.at[2**40].get(mode="clip") == 3 and x.at[-5].get(mode="fill", fill_value=0) == 0


@pytest.mark.parametrize(("dtype", "fill"), [("int16", -(2**15)), ("uint8", 255), ("bool", True), ("float16", np.nan)])
def test_default_fill_values(dtype: str, fill: Any) -> None:
    found = put_on_device(numbers(3).astype(dtype)).at[9].get(mode="fill")
    np.testing.assert_array_equal(found, np.asarray(fill, dtype))


@pytest.mark.full
def test_modes_of_updates() -> None:
    x = put_on_device(numbers(3))
    np.testing.assert_array_equal(x.at[OUT].add(10, mode="drop"), [11, 2, 13])
    np.testing.assert_array_equal(x.at[OUT].add(10, mode="clip"), [21, 2, 23])
    np.testing.assert_array_equal(x.at[7].set(9, mode="drop"), [1, 2, 3])
    np.testing.assert_array_equal(x.at[7].set(9, mode="clip"), [1, 2, 9])
    np.testing.assert_array_equal(jit(lambda x, i: x.at[i].set(9))(x, 7), [1, 2, 3])
    np.testing.assert_array_equal(jit(lambda x, i: x.at[i].set(9))(x, -1), [1, 2, 9])
    np.testing.assert_array_equal(x.at[OUT[:1]].set(9, unique_indices=True, indices_are_sorted=True), [9, 2, 3])
    with pytest.raises(ValueError, match="unknown mode 'wrap'"):
        x.at[0].get(mode="wrap")


STEPS = [np.s_[::2], np.s_[1::3], np.s_[::-2], np.s_[::2, 1::2], np.s_[::-1, ::3], np.s_[3, ::4], np.s_[10:2:-3, 5]]
STEPS += [np.s_[None, ::2, ::-4], np.s_[..., 1:9:2], np.s_[5:5:2], np.s_[::9], np.s_[1:11:5, 2:3:7], np.s_[:11:2, ::13]]


@pytest.mark.sample(52)
@pytest.mark.parametrize("index", STEPS, ids=str)
@pytest.mark.parametrize("how", ["set", *UFUNCS])
def test_slices_with_steps(how: str, index: Any) -> None:
    x, y = numbers(12, 13), 2 + numbers(12, 13)[index] % 3
    expected = x.copy()
    expected[index] = y if how == "set" else UFUNCS[how](x[index], y)

    def update(x: Any, y: Array) -> Any:
        return getattr(x.at[index], how)(y)

    np.testing.assert_allclose(update(put_on_device(x), y), expected, rtol=1e-6)
    np.testing.assert_allclose(xlamini.vmap(update)(np.stack([x, x]), np.stack([y, y]))[1], expected, rtol=1e-6)
    given = grad(lambda y: (put_on_device(x).at[index].set(y) ** 2).sum())(y)
    np.testing.assert_array_equal(given, 2 * y)


def test_small_steps_are_written_without_a_scatter_and_large_ones_with_it() -> None:
    for step, scatters in ((2, 0), (8, 0), (-3, 0), (9, 1), (-9, 1)):
        program = str(xlamini.make_jaxpr(lambda x, step=step: x.at[::step].set(0))(numbers(100)))
        assert program.count("scatter[") == scatters


def test_keys_at_a_step() -> None:
    keys = xlamini.random.split(xlamini.random.key(0), 6)
    found = xlamini.random.key_data(keys.at[::2].set(keys[:3]))
    expected = np.array(xlamini.random.key_data(keys))
    expected[::2] = expected[:3].copy()
    np.testing.assert_array_equal(found, expected)


def test_lists_may_have_traced_elements() -> None:
    def update(a: Any) -> Any:
        return xlamini.numpy.zeros((2, 3)).at[1].set([a, 2.0, a * a])

    np.testing.assert_array_equal(jit(update)(3.0), [[0, 0, 0], [3, 2, 9]])
    assert grad(lambda a: update(a)[1].sum())(3.0) == 7
    np.testing.assert_array_equal(xlamini.numpy.zeros(3).at[1:].add((1, np.float32(2))), [0, 1, 2])
