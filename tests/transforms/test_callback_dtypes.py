"""Results of callbacks that their declared dtype does not hold are errors; floats are rounded."""

import numpy as np
import pytest

import xlamini
from xlamini.errors import CallbackError
from xlamini.experimental import io_callback

HELD = [
    ("int32", np.int64(-5)),
    ("int8", 127),
    ("uint8", 255),
    ("int4", -8),
    ("float32", np.float64(0.1)),
    ("float16", 65504),
    ("float32", np.inf),
    ("bfloat16", 3),
    ("complex64", 1 + 2j),
    ("bool", True),
]
LOST = [
    ("int32", np.int64(2**40)),
    ("int32", 2**31),
    ("int8", 128),
    ("uint8", -1),
    ("uint32", -1),
    ("int4", 8),
    ("float16", 70000),
    ("float32", np.float64(1e300)),
    ("float32", -1e39),
    ("complex64", 1e300j),
]


def called(callback, dtype, value):
    return xlamini.jit(lambda: callback(lambda: value, xlamini.ShapeDtypeStruct((), dtype)))()


@pytest.mark.parametrize("callback", [xlamini.pure_callback, io_callback])
def test_numbers_that_the_dtype_holds(callback):
    for dtype, value in HELD:
        found = called(callback, dtype, value)
        assert found.dtype == dtype and found == np.asarray(value).astype(found.dtype)


@pytest.mark.parametrize("callback", [xlamini.pure_callback, io_callback])
@pytest.mark.parametrize("dtype, value", LOST, ids=str)
def test_numbers_that_it_does_not_hold(callback, dtype, value):
    with pytest.raises(CallbackError, match=f"which {dtype} does not hold"):
        called(callback, dtype, value)


def test_a_bool_is_no_float():
    for value in (True, np.True_):
        with pytest.raises(CallbackError, match="returned bool"):
            called(xlamini.pure_callback, "float32", value)
