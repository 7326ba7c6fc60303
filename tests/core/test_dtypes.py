"""Dtypes against the tables that golden/record_dtypes.py recorded from JAX."""

from __future__ import annotations

import json
import pickle
import warnings

import ml_dtypes
import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from tests.support.paths import GOLDEN
from xlamini.core import dtypes, hooks
from xlamini.core.dtypes.scalar_constructors import constructors
from xlamini.core.errors import TypePromotionError
from xlamini.core.flags.config import enable_x64, numpy_dtype_promotion
from xlamini.core.flags.jax_flags import explicit_x64_dtypes

RECORDED = json.loads((GOLDEN / "dtypes.json").read_text())
SCALARS = {"int": int, "float": float, "complex": complex}
MODES = list(RECORDED["result_type"])


class Typed:
    """Something with a dtype and a weak type, as an array has."""

    def __init__(self, dtype, weak_type=False):
        self.dtype, self.weak_type = dtype, weak_type


class KeyDType(dtypes.ExtendedDType):
    name = "key<test>"
    type = dtypes.prng_key
    physical_shape = (2,)
    physical_dtype = np.dtype("uint32")


KEY = KeyDType()


def dtype(name: str) -> np.dtype:
    return np.dtype(getattr(ml_dtypes, name, name))


def operand(name: str):
    if name.endswith("*"):
        return Typed(dtype(name[:-1]), weak_type=True)
    return SCALARS.get(name) or dtype(name)


def set_mode(mode: str):
    width, promotion = mode.split()
    return enable_x64(width == "x64"), numpy_dtype_promotion(promotion)


def check_table(table: list[str], names: list[str], combine) -> None:
    for a, row in zip(names, table, strict=True):
        found = [combine(operand(a), operand(b)) for b in names]
        assert found == row.split(), a


def promoted(a, b) -> str:
    try:
        return dtypes.promote_types(a, b).name
    except TypePromotionError:
        return "-"


def result(a, b) -> str:
    try:
        found, weak = dtypes.result_type(a, b, return_weak_type_flag=True)
    except TypePromotionError:
        return "-"
    return found.name + "*" * weak


@pytest.mark.parametrize("mode", MODES)
def test_promote_types_is_that_of_jax(mode):
    x64, promotion = set_mode(mode)
    with x64, promotion:
        check_table(RECORDED["promote_types"][mode], [*RECORDED["dtypes"], *SCALARS], promoted)


@pytest.mark.parametrize("mode", MODES)
def test_result_type_is_that_of_jax(mode):
    x64, promotion = set_mode(mode)
    with x64, promotion:
        check_table(RECORDED["result_type"][mode], RECORDED["operands"], result)


def test_names_sizes_and_python_types_are_those_of_jax():
    all_dtypes = [dtype(name) for name in RECORDED["dtypes"]]
    assert [dtypes.short_name(d) for d in all_dtypes] == RECORDED["short_name"]
    assert [dtypes.itemsize_bits(d) for d in all_dtypes] == RECORDED["itemsize_bits"]
    assert [dtypes.scalar_type_of(d).__name__ for d in all_dtypes] == RECORDED["scalar_type_of"]


def test_issubdtype_is_that_of_jax():
    for name, row in zip(RECORDED["dtypes"], RECORDED["issubdtype"], strict=True):
        found = [dtypes.issubdtype(name, getattr(np, c)) for c in RECORDED["classes"]]
        assert [str(int(f)) for f in found] == row.split(), name


def test_can_cast_is_that_of_jax():
    for name, row in zip(RECORDED["dtypes"], RECORDED["can_cast"], strict=True):
        found = [dtypes.can_cast(dtype(name), dtype(to)) for to in RECORDED["dtypes"]]
        assert [str(int(f)) for f in found] == row.split(), name


def test_result_type_of_values():
    assert dtypes.result_type(1) == np.int32
    assert dtypes.result_type(np.zeros(3)) == np.float32
    assert dtypes.result_type(np.float16(1), 2, 3.0) == np.float16
    assert dtypes.result_type(True, 1, return_weak_type_flag=True) == (np.int32, True)
    assert dtypes.result_type("bfloat16", np.float16) == np.float32
    assert dtypes.result_type(np.uint8(3), -5, 2**40) == np.uint8
    with enable_x64(True):
        assert dtypes.result_type(1) == np.int64
        assert dtypes.result_type(np.zeros(3), 1j) == np.complex128


def test_extended_dtypes_promote_with_themselves_only():
    assert dtypes.result_type(KEY, Typed(KEY)) is KEY
    assert dtypes.promote_types(KEY, KEY) is KEY
    with pytest.raises(TypePromotionError, match="key<test> promotes with no other"):
        dtypes.result_type(KEY, np.uint32)


@pytest.mark.parametrize(
    "args, text",
    [
        (("float8_e4m3fn", "float32"), "float32, float8_e4m3fn have no common dtype"),
        (("int4", 1.0), "Python float, int4 have no common dtype: int4 adapts to no other"),
        ((np.array("a"), 1), "<U1 promotes with no other dtype"),
    ],
)
def test_promotion_errors_name_the_dtypes(args, text):
    with pytest.raises(TypePromotionError, match=text):
        dtypes.result_type(*args)


def test_strict_promotion_error_names_the_flag():
    with (
        numpy_dtype_promotion("strict"),
        pytest.raises(TypePromotionError, match=r"'strict'. Convert one with x.astype"),
    ):
        dtypes.result_type(np.int32(1), np.float32(1))


def test_result_type_of_nothing():
    with pytest.raises(ValueError, match="at least one"):
        dtypes.result_type()


def test_canonicalize_follows_x64():
    for wide, narrow in (("float64", "float32"), (int, "int32"), (np.complex128, "complex64")):
        assert dtypes.canonicalize_dtype(wide) == np.dtype(narrow)
        with enable_x64(True):
            assert dtypes.canonicalize_dtype(wide) == np.dtype(wide)
    assert dtypes.canonicalize_dtype("bfloat16") == ml_dtypes.bfloat16
    assert dtypes.canonicalize_dtype(dtypes.float0) == dtypes.float0


def test_no_dtype_is_the_default_float():
    assert dtypes.canonicalize_dtype(None) == np.dtype("float32")
    with enable_x64(True):
        assert dtypes.canonicalize_dtype(None) == np.dtype("float64")


def test_canonicalize_extended_only_where_allowed():
    assert dtypes.canonicalize_dtype(KEY, allow_extended_dtype=True) is KEY
    with pytest.raises(ValueError, match="extended dtype key<test>"):
        dtypes.canonicalize_dtype(KEY)


@pytest.mark.parametrize("bad", ["flaot32", None, object(), 3])
def test_not_a_dtype(bad):
    with pytest.raises(TypeError, match="is not a dtype"):
        dtypes.as_dtype(bad)


@pytest.mark.parametrize("asked", ["float64", np.int64, np.dtype("uint64"), "float"])
def test_an_explicit_64_bit_request_warns(asked):
    given = dtypes.canonicalize_dtype(asked)
    with pytest.warns(
        UserWarning, match=f"zeros: dtype .*64 was asked for.* it is {given}"
    ) as seen:
        assert dtypes.check_user_dtype(asked, "zeros") == given
    assert seen[0].filename == __file__
    assert "XLAMINI_ENABLE_X64" in str(seen[0].message)


def test_no_warning_for_python_types_or_with_x64():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dtypes.check_user_dtype(float, "zeros") == np.float32
        assert dtypes.check_user_dtype("int8", "zeros") == np.int8
        assert dtypes.check_user_dtype(KEY, "zeros") is KEY
        with enable_x64(True):
            assert dtypes.check_user_dtype("float64", "zeros") == np.float64


@pytest.mark.parametrize("bad", [str, object, "datetime64[s]", ">f4"])
def test_dtypes_that_no_array_has(bad):
    with pytest.raises(TypeError, match="zeros: no array can have dtype"):
        dtypes.check_user_dtype(bad, "zeros")


def test_a_64_bit_dtype_is_an_error_under_its_flag():
    make = xlamini.jit(lambda: xlamini.numpy.zeros(2, "float64"))
    with pytest.warns(UserWarning, match="zeros: dtype float64 was asked for"):
        assert make().dtype == np.float32
    with explicit_x64_dtypes("error"):
        for ask in (make, lambda: xlamini.numpy.ones(2).astype("int64")):
            with pytest.raises(ValueError, match=r"dtype \w+64 was asked for, but 64-bit dtypes are off\. Ask for"):
                ask()
        assert xlamini.numpy.zeros(2, float).dtype == np.float32
        with xlamini.enable_x64(True):
            assert xlamini.numpy.zeros(2, "float64").dtype == np.float64
    assert make().dtype == np.float32


@pytest.mark.parametrize(
    "value, expected",
    [
        (True, "bool"),
        (1, "int32"),
        (1.0, "float32"),
        (1j, "complex64"),
        (np.int64(1), "int32"),
        (np.zeros(2), "float32"),
        (Typed(np.dtype("int8")), "int8"),
        (np.zeros(2, ml_dtypes.float8_e5m2), "float8_e5m2"),
    ],
)
def test_dtype_of(value, expected):
    assert dtypes.dtype_of(value) == dtype(expected)


def test_dtype_of_special_values():
    assert dtypes.dtype_of(Typed(KEY)) is KEY
    assert dtypes.dtype_of(np.zeros(2, dtypes.float0)) == dtypes.float0
    assert dtypes.dtype_of(type("Count", (int,), {})(3)) == np.int32


@pytest.mark.parametrize("bad", [[1, 2], None, "float32", np.array("a"), np.array([None])])
def test_dtype_of_what_is_no_array(bad):
    with pytest.raises(TypeError, match=r"needed, but got|no array can have"):
        dtypes.dtype_of(bad)


def test_is_weak():
    assert all(map(dtypes.is_weak, (1, 1.0, 1j, Typed(np.dtype("int32"), weak_type=True))))
    assert not any(map(dtypes.is_weak, (True, np.float64(1), np.zeros(2), Typed(np.dtype(bool)))))


def test_check_fits():
    dtypes.check_fits(255, np.dtype("uint8"))
    dtypes.check_fits(2**70, np.dtype("float32"))
    with pytest.raises(OverflowError, match=r"300 does not fit in int8, which holds -128 to 127"):
        dtypes.check_fits(300, np.dtype("int8"))
    with pytest.raises(OverflowError, match="of 20001 bits does not fit in int32"):
        dtypes.check_fits(2**20000, np.dtype("int32"))


def test_short_names_of_special_dtypes():
    assert dtypes.short_name(KEY) == "key<test>"
    assert dtypes.short_name(dtypes.float0) == "float0"


def test_issubdtype_of_extended_and_python_types():
    assert dtypes.issubdtype(KEY, dtypes.prng_key)
    assert dtypes.issubdtype(KEY, dtypes.extended)
    assert dtypes.issubdtype(dtypes.prng_key, np.generic)
    assert not dtypes.issubdtype(KEY, np.integer)
    assert not dtypes.issubdtype(np.float32, dtypes.extended)
    assert dtypes.issubdtype(bool, np.bool_) and dtypes.issubdtype(int, np.int64)
    assert not dtypes.issubdtype(np.float32, float)
    assert dtypes.issubdtype(KEY, KEY) and not dtypes.issubdtype(KEY, KeyDType())


def test_limits():
    assert dtypes.finfo("bfloat16").bits == 16
    assert dtypes.finfo(float).dtype == np.float64
    assert dtypes.finfo("complex64").dtype == np.float32
    assert (dtypes.iinfo("int4").min, dtypes.iinfo("uint2").max) == (-8, 3)
    for limits, bad in ((dtypes.finfo, "int32"), (dtypes.iinfo, "float32"), (dtypes.iinfo, bool)):
        with pytest.raises(ValueError, match="is for"):
            limits(bad)


def test_itemsize_of_an_extended_dtype():
    assert KEY.itemsize == 8


def test_scalar_constructor_is_a_dtype():
    float32 = constructors["float32"]
    assert float32 == np.float32 and np.dtype("float32") == float32
    assert {np.float32: 1}[float32] == 1
    assert isinstance(np.float32(1), float32) and not isinstance(1.0, float32)
    assert np.zeros(2, float32).dtype == dtypes.as_dtype(float32) == np.float32
    assert dtypes.issubdtype(float32, np.floating)
    assert dtypes.result_type(float32, 1.0) == np.float32
    assert pickle.loads(pickle.dumps(float32)) is float32
    assert repr(float32) == "<class 'xlamini.numpy.float32'>"


def test_scalar_constructor_makes_arrays(monkeypatch):
    monkeypatch.setattr(hooks, "make_array", lambda x, dtype: np.asarray(x, dtype))
    assert constructors["bfloat16"](1.5).dtype == ml_dtypes.bfloat16


def test_a_class_derived_from_a_constructor_makes_arrays():
    class Kind(jnp.int8):
        FIRST = jnp.int8(1)

    assert Kind.FIRST.dtype == Kind(3).dtype == np.dtype(Kind) == jnp.zeros(2, Kind).dtype == np.int8
    assert Kind(3) == 3


def test_a_64_bit_dtype_that_is_asked_for_may_be_allowed():
    jnp = xlamini.numpy
    with explicit_x64_dtypes("allow"):
        z = jnp.zeros(2, "float64")
        makes = {
            "zeros": z, "asarray": jnp.asarray([1.0], dtype=np.float64), "astype": jnp.ones(2).astype("float64"),
            "sum": jnp.sum(jnp.ones(2), dtype="float64"), "plus": z + 1, "with float32": z * jnp.ones(2),
            "product": z @ z, "where": jnp.where(z > 0, z, 1.0), "grad": xlamini.grad(lambda x: x * x)(z[0]),
            "jit": xlamini.jit(lambda x: x * 2)(z), "eye": jnp.eye(2, dtype="float64"), "scalar": jnp.float64(1),
        }
        assert {name: x.dtype.name for name, x in makes.items()} == dict.fromkeys(makes, "float64")
        assert int(jnp.asarray(2**40, dtype="int64")) == 2**40 and (jnp.arange(3, dtype="int64") + 1).dtype == np.int64
        for narrow in (jnp.zeros(2), jnp.zeros(2, float), jnp.asarray(np.ones(2, np.float32)), jnp.ones(2) + 1.0):
            assert narrow.dtype == np.float32
        assert dtypes.result_type(np.ones(2), 1) == np.float32 and (jnp.arange(3) + np.int64(1)).dtype == np.int32
    with pytest.warns(UserWarning, match="zeros: dtype float64 was asked for"):
        assert jnp.zeros(2, "float64").dtype == np.float32
