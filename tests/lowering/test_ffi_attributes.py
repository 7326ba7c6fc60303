"""Attributes of FFI calls: their text is what JAX writes for the same values, where the FFI passes them."""
from __future__ import annotations

import enum
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from jaxlib.mlir import ir

from xlamini.lowering.ffi_attributes import DATA_TYPES, dictionary
from xlamini.lowering.mlir import interned


class Color(enum.IntEnum):
    RED = 3


# As JAX 0.10.2 prints them.
TEXTS: list[tuple[Any, str]] = [
    (3, "3 : i64"),
    (-(2**63), "-9223372036854775808 : i64"),
    (Color.RED, "3 : i64"),
    (True, "true"),
    (np.False_, "false"),
    (1e-5, "1.000000e-05 : f64"),
    (1e22, "1.000000e+22 : f64"),
    (-0.0, "-0.000000e+00 : f64"),
    (float("inf"), "0x7FF0000000000000 : f64"),
    (float("nan"), "0x7FF8000000000000 : f64"),
    (np.float32(2), "2.000000e+00 : f32"),
    (np.float32("-inf"), "0xFF800000 : f32"),
    (np.uint8(200), "200 : ui8"),
    (np.int16(-1), "-1 : i16"),
    (np.uint64(2**64 - 1), "18446744073709551615 : ui64"),
    ('x"y\\z\né', r'"x\22y\\z\0A\C3\A9"'),
    (b"ab", '"ab"'),
    ("", '""'),
    (np.ones((2, 2), np.float32), "dense<1.000000e+00> : tensor<2x2xf32>"),
    (np.array(3.0), "dense<3.000000e+00> : tensor<f64>"),
    (np.zeros(0, np.int32), "dense<> : tensor<0xi32>"),
    (np.uint32([1, 2]), "dense<[1, 2]> : tensor<2xui32>"),
    (np.arange(6, dtype=">i2").reshape(2, 3).T, "dense<[[0, 3], [1, 4], [2, 5]]> : tensor<3x2xi16>"),
    ({"b": 1, "c": np.float32(2)}, "{b = 1 : i64, c = 2.000000e+00 : f32}"),
    ({}, "{}"),
]


def written(**attributes: Any) -> str:
    return str(ir.Attribute.parse(dictionary(attributes), interned().context))


@pytest.mark.parametrize(("value", "text"), TEXTS, ids=str)
def test_texts(value: Any, text: str) -> None:
    assert written(a=value) == f"{{a = {text}}}"


def test_what_jax_cannot_pass() -> None:
    """Nested dicts, dicts of arrays, and dtypes as the numbers of `ffi::DataType`."""
    assert written(a={"b": {"c d": np.int8([4])}}) == '{a = {b = {"c d" = dense<4> : tensor<1xi8>}}}'
    assert written(a=np.dtype("float32"), b=np.int8) == "{a = 11 : ui8, b = 2 : ui8}"
    assert written(a=ml_dtypes.bfloat16) == "{a = 16 : ui8}"


def test_every_dtype_has_a_number_of_its_own() -> None:
    assert len(set(DATA_TYPES.values())) == len(DATA_TYPES)
    assert all(np.dtype(getattr(ml_dtypes, name, name)).name == name for name in DATA_TYPES if name[-1] != "1")


@pytest.mark.parametrize("value", [None, 1j, [1], (1, 2), object(), frozenset()])
def test_other_values_are_refused(value: Any) -> None:
    with pytest.raises(TypeError, match=r"attributes\['a'\] is .*, which the FFI does not pass; attributes are"):
        dictionary({"a": value})


@pytest.mark.parametrize("value", [np.float16(1), np.complex64(1), np.ones(2, bool), np.array("x")])
def test_other_dtypes_are_refused(value: Any) -> None:
    with pytest.raises(TypeError, match=r"attributes\['a'\] is of dtype .*, of which the FFI has no attributes"):
        dictionary({"a": value})


def test_other_names_and_numbers_are_refused() -> None:
    with pytest.raises(TypeError, match=r"attributes\['a'\] has the key 1, but names of attributes are strings"):
        dictionary({"a": {1: 2}})
    with pytest.raises(ValueError, match=r"attributes\['a'\] is 9223372036854775808, but an int is passed in 64 bits"):
        dictionary({"a": 2**63})
    with pytest.raises(TypeError, match="is <class 'object'>, no dtype that the FFI has"):
        dictionary({"a": object})
