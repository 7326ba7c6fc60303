"""Arrays in files, as text, by DLPack, under the array API's protocol, and foreign objects that stand for arrays."""
from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest

import xlamini
from xlamini import dlpack, numpy as jnp
from xlamini.core.dtypes import scalar_types

DTYPES = [dtype.name for dtype in scalar_types if dtype.itemsize < 8]


@pytest.mark.parametrize("dtype", DTYPES)
def test_save_and_load(tmp_path: Path, dtype: str) -> None:
    values = np.arange(6).reshape(2, 3) % 2 + (dtype not in ("bool", "int1"))
    x = values.astype(dtype)
    for array in (x, x[0, 1], x.T, x[:0]):
        jnp.save(tmp_path / "x.npy", array)
        jnp.savez(tmp_path / "x.npz", array, b=x)
        with jnp.load(tmp_path / "x.npz") as several:
            found = [several["arr_0"]]
        try:
            found.append(jnp.load(tmp_path / "x.npy"))
        except TypeError as error:  # XLA has no arrays of dtypes such as uint1
            assert "XLA has no arrays" in str(error)
        for y in found:
            assert y.dtype == x.dtype and np.array_equal(y, array)


def test_a_file_without_the_name_of_its_dtype() -> None:
    file = io.BytesIO()
    np.save(file, np.zeros(2, "V1"))
    file.seek(0)
    with pytest.raises(TypeError, match=r"does not name its dtype, \|V1"):
        jnp.load(file)


def test_a_reshaped_numpy_array_is_a_copy() -> None:
    for x in (np.arange(12.0).reshape(3, 4), np.arange(12.0).reshape(4, 3).T):
        for order in ("C", "F"):
            for shape in (-1, (3, 4), (2, 6)):
                reshaped, right = jnp.reshape(x, shape, order), x.reshape(shape, order=order).copy()
                assert isinstance(reshaped, np.ndarray) and not np.shares_memory(reshaped, x)
                assert np.array_equal(reshaped, right)


def test_savez() -> None:
    file = io.BytesIO()
    jnp.savez(file, jnp.arange(3), b=jnp.ones(2))
    file.seek(0)
    found = jnp.load(file)
    assert sorted(found) == ["arr_0", "b"] and found["b"].tolist() == [1, 1]


def test_print_options() -> None:
    x = jnp.array([1.23456])
    with jnp.printoptions(precision=2):
        assert repr(x) == "Array([1.23], dtype=float32)" and jnp.get_printoptions()["precision"] == 2
    assert jnp.array_repr(x, precision=1) == "Array([1.2], dtype=float32)" and jnp.array_str(x) == "[1.23456]"


def test_set_print_options() -> None:
    before = jnp.get_printoptions()
    try:
        jnp.set_printoptions(precision=3)
        assert str(jnp.array([1.23456])) == "[1.235]"
    finally:
        jnp.set_printoptions(**before)


def test_what_can_be_read_or_walked() -> None:
    with pytest.raises(NotImplementedError, match=r"np\.fromfile"):
        jnp.fromfile("numbers.bin")
    assert jnp.fromiter((n * n for n in range(4)), dtype="int32").tolist() == [0, 1, 4, 9]
    assert jnp.iterable(jnp.ones(2)) and jnp.iterable([1]) and not jnp.iterable(1.0)
    assert not jnp.iterable(jnp.ones(()))


def test_dlpack_shares_memory() -> None:
    x = jnp.arange(4.0)
    shared, copied = dlpack.from_dlpack(x), jnp.from_dlpack(x, copy=True)
    assert shared.unsafe_buffer_pointer() == x.unsafe_buffer_pointer() != copied.unsafe_buffer_pointer()
    assert (shared + copied).tolist() == [0, 2, 4, 6]


def test_dlpack_of_strided_and_wide_arrays() -> None:
    assert jnp.from_dlpack(np.arange(8.0)[::2]).tolist() == [0, 2, 4, 6]
    assert jnp.from_dlpack(np.arange(3)).dtype == np.int32
    with pytest.raises(ValueError, match="copy=False"):
        jnp.from_dlpack(np.arange(8.0)[::2], copy=False)


def test_array_api_namespace() -> None:
    x = jnp.ones(2)
    assert x.__array_namespace__(api_version="2024.12") is jnp
    assert jnp.__array_namespace_info__().default_dtypes()["integral"] == np.int32
    with pytest.raises(ValueError, match="2020"):
        x.__array_namespace__(api_version="2020.12")


class Stand:
    """It stands for an array."""

    def __jax_array__(self) -> xlamini.Array:
        return jnp.arange(3.0)


def test_objects_that_stand_for_arrays() -> None:
    stand = Stand()
    for made in (jnp.add(stand, 1), jnp.ones(3) + stand, jnp.asarray(stand) + 1, jnp.sin(stand) * 0 + jnp.arange(1, 4)):
        assert made.tolist() == [1, 2, 3]
    assert jnp.stack([stand, stand]).shape == jnp.array([stand, stand]).shape == (2, 3)
    assert xlamini.jit(lambda x: x + stand + jnp.add(stand, x))(0.0).tolist() == [0, 2, 4]


def test_methods_of_arrays() -> None:
    x = jnp.arange(3)
    assert x.choose([x, x + 10, x + 20]).tolist() == [0, 11, 22]
    assert x.compress(jnp.array([True, False, True])).tolist() == [0, 2]
    assert hex(jnp.array(31)) == "0x1f" and sorted(x.argpartition(1).tolist()) == [0, 1, 2]


def test_ufuncs_are_objects() -> None:
    assert isinstance(jnp.add, jnp.ufunc) and repr(jnp.add) == "<jnp.ufunc 'add'>" and jnp.add.nargs == 3
    fun = jnp.frompyfunc(lambda x, y: x + 2 * y, 2, 1)
    np.testing.assert_array_equal(fun.outer(jnp.arange(2), jnp.arange(2)), [[0, 2], [1, 3]])
    np.testing.assert_array_equal(xlamini.vmap(fun.reduce)(jnp.ones((2, 3))), [5, 5])
    assert xlamini.grad(lambda v: fun.accumulate(v).sum())(jnp.ones(3)).tolist() == [3, 4, 2]


def test_index_expressions() -> None:
    assert jnp.s_[1:2, ...] == (slice(1, 2), ...) and jnp.index_exp[1] == (1,)
