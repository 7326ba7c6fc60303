"""Attributes of FFI calls: Python values as MLIR's text.

The FFI passes bools, integers, float32 and float64, strings, arrays of numbers, and dictionaries of all these. Python
ints become 64-bit integers, and Python floats float64. A dtype becomes the number of its `ffi::DataType`, a uint8.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from xlamini.lowering.mlir import element_type_text

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_KEPT = re.compile(rb"[ !#-\[\]-~]")  # printable ASCII without the quotation mark and the backslash
_FITTING = frozenset({"int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64"})


def dictionary(attributes: Mapping[str, Any], what: str = "attributes") -> str:
    """MLIR's text of attributes by name; `what` is their name in messages.

    Raises:
      TypeError: a value that the FFI does not pass, or a name that is no string.
      ValueError: an int that needs more than 64 bits.

    >>> dictionary({"eps": 1e-5, "mode": "rms", "sizes": np.array([1, 2])})
    '{eps = 1.0e-05 : f64, mode = "rms", sizes = dense<"0x01000000000000000200000000000000"> : tensor<2xi64>}'
    """
    each = [f"{_name(name, what)} = {_attribute(value, f'{what}[{name!r}]')}" for name, value in attributes.items()]
    return "{" + ", ".join(each) + "}"


def quoted(text: str | bytes) -> str:
    """MLIR's text of a string.

    >>> print(quoted('a "b"'))
    "a \\22b\\22"
    """
    raw = text.encode() if isinstance(text, str) else text
    each = [chr(byte) if _KEPT.match(bytes([byte])) else f"\\{byte:02X}" for byte in raw]
    return f'"{"".join(each)}"'


def _name(name: Any, what: str) -> str:
    if not isinstance(name, str):
        raise TypeError(f"{what} has the key {name!r}, but names of attributes are strings")
    return name if _NAME.fullmatch(name) else quoted(name)


def _attribute(value: Any, what: str) -> str:
    for kinds, write in _WRITERS:
        if isinstance(value, kinds):
            return write(value, what)
    raise TypeError(
        f"{what} is {value!r} of type {type(value).__name__}, which the FFI does not pass; attributes are numbers, "
        "strings, NumPy arrays, dtypes, and dicts of these, all fixed when the program is traced"
    )


def _int(value: int, what: str) -> str:
    if not -(2**63) <= value < 2**63:
        raise ValueError(f"{what} is {value}, but an int is passed in 64 bits; pass np.uint64({value}), or a string")
    return f"{int(value)} : i64"


def _number(value: Any, what: str) -> str:
    """A NumPy scalar, of its dtype."""
    dtype = _fitting(value.dtype, what, "np.float32(x)")
    text = _float(value) if dtype.kind == "f" else f"{int(value)}"
    return f"{text} : {element_type_text(dtype)}"


def _float(value: Any) -> str:
    """A float in MLIR's notation: with a decimal point, or as its bits if it is not finite."""
    if not np.isfinite(value):
        return f"0x{value.view(f'u{value.itemsize}'):0{2 * value.itemsize}X}"
    mantissa, e, exponent = repr(float(value)).partition("e")
    return f"{mantissa if '.' in mantissa else mantissa + '.0'}{e}{exponent}"


def _array(value: np.ndarray, what: str) -> str:
    dtype = _fitting(value.dtype, what, "x.astype('uint8') or x.astype('float32')")
    raw = np.ascontiguousarray(value, dtype.newbyteorder("<")).tobytes()
    shape = "".join(f"{size}x" for size in value.shape)
    content = f'"0x{raw.hex().upper()}"' if raw else ""
    return f"dense<{content}> : tensor<{shape}{element_type_text(dtype)}>"


def _fitting(dtype: np.dtype, what: str, fix: str) -> np.dtype:
    """The dtype in this machine's byte order; TypeError if the FFI has no attributes of it."""
    if dtype.name not in _FITTING:
        raise TypeError(f"{what} is of dtype {dtype}, of which the FFI has no attributes; convert it, such as {fix}")
    return np.dtype(dtype.name)


def _dtype(value: Any, what: str) -> str:
    name = np.dtype(value).name
    if name not in DATA_TYPES:
        raise TypeError(f"{what} is {value!r}, no dtype that the FFI has; pass a dtype such as np.dtype('float32')")
    return f"{DATA_TYPES[name]} : ui8"


# The numbers of `ffi::DataType` in c_api.h, which are part of its binary interface.
DATA_TYPES: Mapping[str, int] = {
    "bool": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "uint8": 6, "uint16": 7, "uint32": 8, "uint64": 9,
    "float16": 10, "float32": 11, "float64": 12, "complex64": 15, "bfloat16": 16, "complex128": 18, "float8_e5m2": 19,
    "float8_e4m3fn": 20, "int4": 21, "uint4": 22, "float8_e4m3b11fnuz": 23, "float8_e5m2fnuz": 24,
    "float8_e4m3fnuz": 25, "int2": 26, "uint2": 27, "float8_e4m3": 28, "float8_e3m4": 29, "int1": 30, "uint1": 31,
    "float4_e2m1fn": 32, "float8_e8m0fnu": 33,
}  # fmt: skip

_WRITERS: tuple[tuple[Any, Callable[[Any, str], str]], ...] = (
    ((bool, np.bool_), lambda value, what: str(bool(value)).lower()),
    (np.generic, _number),
    (int, _int),
    (float, lambda value, what: f"{_float(np.float64(value))} : f64"),
    ((str, bytes), lambda value, what: quoted(value)),
    (np.ndarray, _array),
    ((np.dtype, type), _dtype),
    (Mapping, dictionary),
)
