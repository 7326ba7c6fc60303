"""x[index], x.at[index], take and put, beside NumPy; and what is said of an index that does not fit."""
from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import grad, jit, vmap
from xlamini import numpy as jnp
from xlamini.numpy import indexing
from xlamini.primitives.shape import sum_over

Array = np.ndarray


@pytest.fixture(autouse=True)
def checked() -> Iterator[None]:
    with xlamini.enable_checks(True):
        yield


def put_on_device(x: Any) -> Any:
    return xlamini.device_put(x)


def numbers(*shape: int, dtype: Any = np.float32) -> Array:
    return np.arange(1, 1 + int(np.prod(shape)), dtype=dtype).reshape(shape)


def summed(x: Any) -> Any:
    return sum_over(x, range(x.ndim))


I, J = np.array([2, 0, -1]), np.array([[1, -2], [0, 0]])
MASK = np.array([True, False, True])
MATRIX_MASK = np.array([[True, False, True, False]] * 2 + [[False] * 4])
NOTHING = np.array([], np.int32)

BASIC = [
    0,
    -1,
    np.int64(1),
    np.array(2),
    (),
    ...,
    None,
    (1, 2, -3),
    (..., 1),
    (1, ...),
    (0, ..., 1),
    (None, 1, None),
    (..., None),
    slice(None),
    slice(1, 3),
    slice(-2, None),
    slice(None, -1),
    slice(5, 9),
    slice(2, 1),
    slice(None, None, -1),
    slice(None, None, 2),
    slice(2, 0, -1),
    slice(-1, None, -2),
    (slice(0, 2), slice(1, None, 2), slice(None, None, -2)),
    (slice(None), -1, None, slice(1, 2)),
    (slice(1, 1), 0),
    (None, ..., None, 0),
]
ADVANCED = [
    I,
    J,
    NOTHING,
    np.array([1], np.uint8),
    (I, I),
    (I, None, I),
    (slice(None), I),
    (slice(None), I, I),
    (I, slice(None), I),
    (I, ..., I),
    (slice(None), I, ..., I),
    (..., I),
    (J, I[:2]),
    (J, 1),
    (1, J),
    (0, slice(None), I),
    (slice(None), 0, I),
    (slice(None, None, 2), I),
    (slice(None, None, -1), I),
    (I, slice(3, None, -2)),
    (slice(None, None, -2), J, slice(1, 3)),
    (slice(1, 3), slice(None), I),
    (None, I, None),
    (I, None, slice(2), None),
    (slice(0), I),
    (NOTHING, slice(1, 3)),
    ([0, 1], [1, 1]),
    (slice(None), []),
]
MASKS = [
    MASK,
    MATRIX_MASK,
    (MASK, 1),
    (slice(None), MATRIX_MASK[0]),
    (MASK, slice(1, 3)),
    (MASK, np.array([0, 1])),
    (..., np.array([True, False, True, False, True])),
    (MASK, None, np.array([1, 0])),
    np.zeros(3, bool),
    True,
    False,
    np.True_,
    (None, True),
    (0, True),
    (slice(None), True),
    (0, slice(None), False),
    (MASK, True),
    np.ones((3, 4, 5), bool),
]
INDICES = [*BASIC, *ADVANCED, *MASKS]


def named(index: Any) -> str:
    return re.sub(r"\s+|array|slice|dtype=|None", lambda m: "N" if m[0] == "None" else "", repr(index))[:40]


each_index = pytest.mark.parametrize("index", INDICES, ids=named)


def traced(index: Any) -> tuple[Callable[..., Any], list[Any]]:
    """The index as a function of its integer arrays and numbers, which are to be traced."""
    items = index if isinstance(index, tuple) else (index,)
    is_dynamic = [isinstance(i, int | np.integer | np.ndarray) and np.asarray(i).dtype.kind in "iu" for i in items]
    leaves = [np.asarray(i) for i, dynamic in zip(items, is_dynamic, strict=True) if dynamic]

    def rebuilt(*values: Any) -> Any:
        remaining = iter(values)
        return tuple(next(remaining) if d else i for i, d in zip(items, is_dynamic, strict=True))

    return rebuilt, leaves


# --- reading


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
        np.testing.assert_array_equal(shared, np.stack([x[0][rebuilt(*(leaf[b] for leaf in batched))] for b in range(2)]))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "float16", "complex64"])
def test_getitem_keeps_the_dtype(dtype: str) -> None:
    x = put_on_device(numbers(3, 4).astype(dtype))
    assert {x[0].dtype, x[I].dtype, x[MASK].dtype, x[:2].dtype, x[None, True].dtype} == {np.dtype(dtype)}


def test_an_index_of_one_form_is_compiled_once() -> None:
    x = put_on_device(numbers(10, 3))
    programs = indexing._reader.cache_info().currsize
    for start in range(5):
        np.testing.assert_array_equal(x[start : start + 4, start % 3], numbers(10, 3)[start : start + 4, start % 3])
    assert indexing._reader.cache_info().currsize <= programs + 1


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


# --- x.at

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


@each_index
def test_at_set_equals_assignment(index: Any) -> None:
    x = numbers(3, 4, 5)
    expected = x.copy()
    expected[index] = 7
    rebuilt, leaves = traced(index)
    staged = jit(lambda x, *leaves: x.at[rebuilt(*leaves)].set(7))(x, *leaves)
    for found in (put_on_device(x).at[index].set(7), staged):
        np.testing.assert_array_equal(found, expected)


@each_index
def test_at_add_equals_numpy(index: Any) -> None:
    x = numbers(3, 4, 5)
    values, expected = values_for(x, index), x.copy()
    np.add.at(expected, index, values)
    rebuilt, leaves = traced(index)
    staged = jit(lambda x, v, *leaves: x.at[rebuilt(*leaves)].add(v))(x, values, *leaves)
    for found in (put_on_device(x).at[index].add(values), staged):
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("how", UFUNCS)
@pytest.mark.parametrize("index", [1, slice(1, 3), slice(None, None, -2), I, (I, slice(0, 2)), MASK, MATRIX_MASK, ...], ids=named)
def test_at_methods_equal_numpy(how: str, index: Any) -> None:
    x = numbers(3, 4)
    values, expected = values_for(x, index), x.copy()
    UFUNCS[how].at(expected, index, values)
    update = lambda x, v: getattr(x.at[index], how)(v)  # noqa: E731
    for found in (update(put_on_device(x), values), jit(update)(x, values)):
        np.testing.assert_allclose(found, expected, rtol=1e-6)
    scalar = x.copy()
    UFUNCS[how].at(scalar, index, np.float32(2))
    np.testing.assert_allclose(update(put_on_device(x), 2.0), scalar, rtol=1e-6)


@each_index
def test_gradient_of_at_set(index: Any) -> None:
    x = numbers(3, 4, 5)
    if len({*map(tuple, np.stack(np.unravel_index(numbers(3, 4, 5)[index].astype(int).ravel() - 1, x.shape), 1))}) < x[index].size:
        pytest.skip("which of several values wins is not fixed")
    kept = np.ones_like(x)
    kept[index] = 0
    weights = numbers(3, 4, 5)
    of_x, of_values = grad(lambda x, v: summed(x.at[index].set(v) * weights), (0, 1))(x, values_for(x, index))
    np.testing.assert_array_equal(of_x, kept * weights)
    np.testing.assert_array_equal(of_values, weights[index])


def test_gradient_of_repeated_set_goes_to_the_value_that_won() -> None:
    x, values = numbers(3), np.array([5, 6, 7], np.float32)
    update = lambda x, v: x.at[np.array([1, 1, 0])].set(v)  # noqa: E731
    out = np.asarray(update(put_on_device(x), values))
    of_x, of_values = grad(lambda x, v: summed(update(x, v)), (0, 1))(x, values)
    np.testing.assert_array_equal(of_x, [0, 0, 1])
    np.testing.assert_array_equal(of_values, [out[1] == 5, out[1] == 6, 1])


def test_mul_at_indices_that_may_repeat_has_no_derivative_in_the_values() -> None:
    loss = lambda v, unique: summed(put_on_device(numbers(3)).at[I[:2]].multiply(v, unique_indices=unique))  # noqa: E731
    np.testing.assert_array_equal(grad(loss)(np.ones(2, np.float32), True), [3, 1])
    with pytest.raises(NotImplementedError, match="unique_indices=True"):
        grad(loss)(np.ones(2, np.float32), False)


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
    ("dtype", "value"), [("float32", 1), ("float32", True), ("int32", np.int8(3)), ("complex64", 1.5), ("bfloat16", 2.0)]
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
    get = lambda **options: np.asarray(x.at[OUT].get(**options))  # noqa: E731
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


# --- take and put


@pytest.mark.parametrize(("axis", "mode"), list(itertools.product([None, 0, 1, -1], [None, "clip", "wrap"])))
def test_take(axis: int | None, mode: str | None) -> None:
    x, indices = numbers(3, 4), np.array([[0, 2], [1, 0]]) if mode is None else np.array([-3, 20, 1])
    expected = np.take(x, indices, axis, mode=mode or "raise")
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
    "x.at[np.array([3])].add(0)": (IndexError, "index 3 is out of bounds"),
    "jit(lambda x: x[3])(x)": (IndexError, "index 3 is out of bounds for axis 0 with size 3"),
    "x[0, 0, 0]": (IndexError, "too many indices: an array of shape (3, 4) has 2 axes, but 3 are indexed"),
    "x[0][0][0]": (IndexError, "too many indices: an array of shape () has 0 axes"),
    "x[..., 0, ...]": (IndexError, "an index can only have a single ellipsis"),
    "x[[0, 1]]": (TypeError, "a list is no index"),
    "x[1.0]": (TypeError, "index 0 is 1.0 of type float"),
    "x['a']": (TypeError, "index 0 is 'a' of type str"),
    "x[0, object]": (IndexError, "index 1 is <class 'object'> of type type"),
    "x[np.ones(2)]": (TypeError, "an index array holds integers"),
    "x[0.5:2]": (TypeError, "has a bound that is not an integer"),
    "x[::0]": (ValueError, "slice step cannot be zero"),
    "x[np.array([True, False])]": (IndexError, "a boolean index of shape (2,) does not fit: from axis 0 on"),
    "x[0, np.ones(3, bool)]": (IndexError, "a boolean index of shape (3,) does not fit: from axis 1 on"),
    "x[np.array([0, 1]), np.array([0, 1, 2])]": (IndexError, "shape mismatch: integer arrays of shapes (2,) (3,)"),
    "jit(lambda x: x[x > 3])(x)": (xlamini.errors.NonConcreteBooleanIndexError, "jnp.where(mask, x, 0)"),
    "jit(lambda x, i: x[i : i + 2])(x, 1)": (IndexError, "lax.dynamic_slice_in_dim(x, start, size, axis=0)"),
    "x.at[0].set('a')": (TypeError, "operand 0 must be an array or a number, got str"),
    "x.at[0].set(1, sorted=True)": (TypeError, "unexpected keyword argument 'sorted'"),
    "jnp.take(x, np.ones(2))": (TypeError, "take: indices must be integers"),
    "jnp.take(x, 0, mode='raise')": (NotImplementedError, "mode 'raise' is not possible"),
    "jnp.take_along_axis(x, np.array([0]), 0)": (TypeError, "must have as many axes as the array"),
    "jnp.take_along_axis(x, np.zeros((2, 2), int), 0)": (TypeError, "must have equal sizes, or 1, in all axes but axis 0"),
}


@pytest.mark.parametrize("program", ERRORS)
def test_errors(program: str) -> None:
    kind, text = ERRORS[program]
    names = {**globals(), "x": put_on_device(numbers(3, 4))}
    with pytest.raises(kind, match=re.escape(text)), warnings.catch_warnings():
        eval(program, names)
