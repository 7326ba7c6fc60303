"""Arrays, devices and conversions, without any operation on arrays."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

from xlamini.core.errors import DeletedArrayError
from xlamini.core.flags import config
from xlamini.core.program.avals import ShapedArray
from xlamini.runtime.arrays.array import Array, ArrayImpl, install
from xlamini.runtime.arrays.conversions import device_get
from xlamini.runtime.arrays.lifetime import explain_failure, wait_for
from xlamini.runtime.arrays.to_device import copy_of, device_put_value
from xlamini.runtime.devices import platforms
from xlamini.runtime.sharding import SingleDeviceSharding, on_device

BF16 = ml_dtypes.bfloat16
SMALL_DTYPES = [
    BF16,
    ml_dtypes.int4,
    ml_dtypes.uint2,
    ml_dtypes.float8_e4m3fn,
    ml_dtypes.float8_e5m2,
]


def run_python(code: str, **environment: str) -> str:
    """What a fresh Python prints, stdout and stderr, when it runs `code`."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


# Values and types


@pytest.mark.parametrize(
    "value, aval",
    [
        (True, ShapedArray((), bool)),
        (1, ShapedArray((), "int32", True)),
        (1.5, ShapedArray((), "float32", True)),
        (2j, ShapedArray((), "complex64", True)),
        (np.float64(1), ShapedArray((), "float32")),
        (np.uint64(7), ShapedArray((), "uint32")),
        (np.ones((2, 3)), ShapedArray((2, 3), "float32")),
        (np.arange(4, dtype=">i4"), ShapedArray((4,), "int32")),
        (np.zeros((0, 3), np.float16), ShapedArray((0, 3), "float16")),
        (np.arange(6.0).reshape(2, 3).T, ShapedArray((3, 2), "float32")),
    ],
)
def test_put_gives_the_canonical_type_and_the_value(value, aval):
    x = device_put_value(value)
    assert x.aval is aval
    np.testing.assert_array_equal(np.asarray(x), value)


def test_put_keeps_64_bits_under_x64():
    with config.enable_x64(True):
        assert device_put_value(2**40).aval is ShapedArray((), "int64", True)
        assert device_put_value(np.ones(2)).aval is ShapedArray((2,), "float64")
        assert device_put_value(np.array([2**40])).tolist() == [2**40]


@pytest.mark.parametrize("dtype", SMALL_DTYPES)
def test_small_dtypes_go_in_and_out(dtype):
    value = np.array([[0, 1], [1, 0]]).astype(dtype)
    x = device_put_value(value)
    assert x.dtype == dtype
    assert np.array_equal(np.asarray(x), value)
    assert np.dtype(dtype).name in repr(x)
    assert pickle.loads(pickle.dumps(x)).tolist() == value.tolist()


def test_put_with_an_aval_takes_its_dtype_and_weak_type():
    x = device_put_value(3, aval=ShapedArray((), BF16, True))
    assert (x.dtype, x.weak_type, x.item()) == (BF16, True, 3.0)


@pytest.mark.parametrize("size", [1, 7, 1000, 100_000])
@pytest.mark.parametrize("offset", range(0, 16, 4))
def test_put_copies_numpy_memory(size, offset):
    value = np.zeros(size + 16, np.float32)[offset : offset + size]
    x = device_put_value(value)
    value[:] = 5
    assert np.asarray(x).max() == 0


@pytest.mark.parametrize(
    "value, error, words",
    [
        ("a", TypeError, "cannot hold a value of type str"),
        ([1, 2], TypeError, "cannot hold a value of type list"),
        (np.array(["a"]), TypeError, "no array can have dtype <U1"),
        (np.zeros(2, "i4,i4"), TypeError, "no array can have dtype"),
        (np.longdouble(1), TypeError, "no array can have dtype"),
        (2**40, OverflowError, "does not fit in int32"),
        (-(2**100), OverflowError, "does not fit in int32"),
    ],
)
def test_put_refuses(value, error, words):
    with pytest.raises(error, match=words):
        device_put_value(value)


def test_put_refuses_a_place_that_is_none():
    with pytest.raises(TypeError, match="device must be a device or a sharding, but is 'cpu'"):
        device_put_value(1, "cpu")


def test_put_of_an_array_is_itself_unless_it_must_move_or_be_bound():
    x, device = device_put_value(1.0), platforms.devices()[0]
    assert device_put_value(x) is x
    bound = device_put_value(x, device)
    assert bound.committed and not x.committed
    assert device_put_value(bound, device) is bound


def test_device_get_makes_ndarrays_in_a_pytree():
    got = device_get({"a": device_put_value(np.ones(2)), "b": 3, "c": None})
    assert isinstance(got["a"], np.ndarray)
    assert (got["b"], got["c"]) == (3, None)


# Text: what JAX 0.10.2 prints

WIDE = np.arange(17) * 1000
TEXTS = [
    (1, "Array(1, dtype=int32, weak_type=True)"),
    (2.5, "Array(2.5, dtype=float32, weak_type=True)"),
    (True, "Array(True, dtype=bool)"),
    (np.float32(0.1), "Array(0.1, dtype=float32)"),
    (np.arange(3.0), "Array([0., 1., 2.], dtype=float32)"),
    (np.ones((2, 2), np.int8), "Array([[1, 1],\n       [1, 1]], dtype=int8)"),
    (np.zeros((0, 3)), "Array([], shape=(0, 3), dtype=float32)"),
    (np.array([1 + 2j, 3.5]), "Array([1. +2.j, 3.5+0.j], dtype=complex64)"),
    (np.array([np.nan, np.inf, -1]), "Array([nan, inf, -1.], dtype=float32)"),
    (np.ones(3, BF16), "Array([1, 1, 1], dtype=bfloat16)"),
    (np.arange(2000), "Array([   0,    1,    2, ..., 1997, 1998, 1999], dtype=int32)"),
    (
        WIDE,
        "Array([    0,  1000,  2000,  3000,  4000,  5000,  6000,  7000,  8000,\n"
        "        9000, 10000, 11000, 12000, 13000, 14000, 15000, 16000],      dtype=int32)",
    ),
]


@pytest.mark.parametrize("value, text", TEXTS, ids=range(len(TEXTS)))
def test_repr_is_that_of_jax(value, text):
    assert repr(device_put_value(value)) == text


def test_str_and_format_are_those_of_numpy():
    x = device_put_value(np.arange(3.0))
    assert str(x) == f"{x}" == "[0. 1. 2.]"
    assert f"{device_put_value(1.5):.3f}" == "1.500"
    with pytest.raises(TypeError):
        format(x, ".3f")


# To Python and NumPy


def test_scalars_convert_to_python_numbers():
    x = device_put_value(np.float32(2.5))
    assert (float(x), int(x), complex(x), bool(x), x.item()) == (2.5, 2, 2.5 + 0j, True, 2.5)
    assert [10, 20][device_put_value(1)] == 20
    assert bool(device_put_value(np.ones((1, 1))))
    assert type(device_put_value(np.ones((), BF16)).item()) is float


@pytest.mark.parametrize(
    "convert, value, error, words",
    [
        (float, np.ones(3), TypeError, "only an array of shape .* but this is float32.3."),
        (int, np.ones(1), TypeError, "write x.item"),
        (float, 1j, TypeError, "complex"),
        (bool, np.ones(2), ValueError, "write x.any"),
        (bool, np.ones(0), ValueError, "array of 0 elements"),
        ([1, 2].__getitem__, 1.0, TypeError, "only an integer scalar can be an index"),
        ([1, 2].__getitem__, True, TypeError, "only an integer scalar can be an index"),
        (len, 1, TypeError, "len.. of unsized object"),
        (hash, 1, TypeError, "unhashable type: 'jaxlib._jax.ArrayImpl'"),
    ],
)
def test_conversions_refuse(convert, value, error, words):
    x = device_put_value(value)
    with pytest.raises(error, match=words):
        convert(x)


def test_asarray_is_a_read_only_view_and_array_a_copy():
    x = device_put_value(np.arange(3.0))
    assert not np.asarray(x).flags.writeable
    assert np.array(x).flags.writeable
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    assert np.asarray(device_put_value(np.ones(2, BF16))).dtype == BF16


def test_pickle_and_copies_keep_value_and_weak_type():
    for value in (1, np.arange(6.0).reshape(2, 3)):
        x = device_put_value(value)
        for y in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
            assert y.aval is x.aval
            assert y.tolist() == x.tolist()
            assert y.unsafe_buffer_pointer() != x.unsafe_buffer_pointer()


def test_dlpack_shares_memory_unless_a_copy_is_asked_for():
    x = device_put_value(np.arange(3.0))
    assert np.from_dlpack(x).ctypes.data == x.unsafe_buffer_pointer()
    assert np.from_dlpack(x, copy=True).ctypes.data != x.unsafe_buffer_pointer()
    with pytest.raises(BufferError, match="there is no such device here"):
        x.__dlpack__(dl_device=(2, 0))


# Place and life


def test_an_array_knows_its_place():
    x, device = device_put_value(np.ones((2, 3))), platforms.devices()[0]
    assert x.device == device and x.devices() == {device}
    assert x.is_fully_addressable and x.is_fully_replicated
    (shard,) = x.addressable_shards
    assert (shard.device, shard.index, shard.replica_id) == (device, (slice(None),) * 2, 0)
    assert shard.data.tolist() == x.tolist() and shard.data.shape == (2, 3)


def test_single_device_sharding_compares_by_device():
    device = platforms.devices()[0]
    sharding = SingleDeviceSharding(device)
    assert sharding == on_device(device) and hash(sharding) == hash(on_device(device))
    assert sharding.shard_shape((2, 3)) == (2, 3)
    assert sharding.memory_kind == device.default_memory().kind
    assert repr(sharding).startswith("SingleDeviceSharding(device=CpuDevice(id=0)")


@pytest.mark.parametrize(
    "use",
    [
        np.asarray,
        ArrayImpl.tolist,
        ArrayImpl.block_until_ready,
        lambda x: wait_for([device_put_value(2.0), x]),
        pickle.dumps,
        copy_of,
        device_put_value,
        ArrayImpl.is_ready,
        ArrayImpl.unsafe_buffer_pointer,
        ArrayImpl.__dlpack__,
        float,
    ],
)
def test_use_of_a_deleted_array_is_a_typed_error(use):
    x = device_put_value(1.0)
    x.delete()
    with pytest.raises(DeletedArrayError, match=r"float32\[\] was deleted or donated"):
        use(x)


def test_a_deleted_array_still_has_type_and_text():
    x = device_put_value(np.ones(3))
    x.delete()
    x.delete()
    assert x.is_deleted() and x.shape == (3,)
    assert repr(x) == "<deleted Array float32[3]>"


def test_explain_failure_names_the_argument():
    dead, alive = device_put_value(1.0), device_put_value(2.0)
    dead.delete()
    error = explain_failure(
        ValueError("INVALID_ARGUMENT: Buffer has been deleted or donated."), [("x", alive), ("y", dead)]
    )
    assert isinstance(error, DeletedArrayError) and str(error).startswith("Array has been deleted: y, an array")
    assert explain_failure(ValueError("other"), [("y", dead)]) is None


@pytest.mark.parametrize(
    "index, text",
    [
        (0, "x.at[0].set"),
        ((slice(1, None), ..., None, -1), "x.at[1:, ..., None, -1].set"),
        (slice(None, 5, 2), "x.at[:5:2].set"),
        (np.array([0, 2]), "x.at[array([0, 2])].set"),
        (np.arange(100), "x.at[index].set"),
    ],
)
def test_assignment_shows_the_at_form(index, text):
    with pytest.raises(TypeError) as raised:
        device_put_value(np.ones(3))[index] = 1
    assert text in str(raised.value)


def test_array_is_the_class_of_arrays_and_of_what_is_registered():
    class Stand:
        pass

    assert isinstance(device_put_value(1), Array)
    assert not isinstance(np.ones(1), Array) and not isinstance(Stand(), Array)
    Array.register(Stand)
    assert isinstance(Stand(), Array)


def test_install_sets_members_on_arrays():
    class More:
        def twice_as_list(self) -> list:
            return [2 * v for v in self.tolist()]

    install(More)
    try:
        assert device_put_value(np.arange(3)).twice_as_list() == [0, 2, 4]
    finally:
        del ArrayImpl.twice_as_list


# Platforms and versions


def test_platforms_by_name():
    assert platforms.devices("cpu") == platforms.devices()
    assert (platforms.default_backend(), platforms.process_index(), platforms.process_count()) == (
        "cpu",
        0,
        1,
    )
    with pytest.raises(RuntimeError, match="no platform 'abacus'; xlamini knows cpu, cuda"):
        platforms.devices("abacus")
    with pytest.raises(ValueError, match="there is no process 3"):
        platforms.local_devices(process_index=3)


def test_a_platform_that_cannot_start_raises():
    def fail():
        raise OSError("no such hardware")

    platforms.register_platform("broken", fail)
    with pytest.raises(
        RuntimeError, match="platform 'broken' failed to initialize: no such hardware"
    ):
        platforms.devices("broken")


@pytest.mark.full
def test_virtual_cpu_devices_and_the_default_device():
    code = """
from xlamini.core.flags import config
from xlamini.runtime.devices import platforms
from xlamini.runtime.arrays.array import Array
from xlamini.runtime.arrays.to_device import device_put_value
first, second = platforms.devices()
with config.default_device(second):
    x = device_put_value(1.0)
assert x.device == second and not x.committed
y = device_put_value(x, first)
assert y.device == first and y.committed and y.item() == 1.0
assert x.sharding != y.sharding
"""
    assert run_python(code, XLAMINI_NUM_CPU_DEVICES="2") == ""
