"""MLIR types and attributes as NumPy has them."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np
from jaxlib.mlir import ir

_NAMES = {
    "i1": bool, "f16": np.float16, "f32": np.float32, "f64": np.float64, "bf16": ml_dtypes.bfloat16, "index": np.int64,
    "ui8": np.uint8, "ui16": np.uint16, "ui32": np.uint32, "ui64": np.uint64,
    "i2": ml_dtypes.int2, "i4": ml_dtypes.int4, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "f8E4M3FN": ml_dtypes.float8_e4m3fn, "f8E5M2": ml_dtypes.float8_e5m2, "f8E4M3": ml_dtypes.float8_e4m3,
    "f8E4M3B11FNUZ": ml_dtypes.float8_e4m3b11fnuz, "f4E2M1FN": ml_dtypes.float4_e2m1fn,
    "f8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz, "f8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
}  # fmt: skip
_ADDRESS = np.dtype(np.int64)


class Kind(NamedTuple):
    """A type: the shape, the dtype, and for pointers the dtype that they point to."""

    shape: tuple[int, ...]
    dtype: np.dtype
    pointee: np.dtype | None = None
    is_memory: bool = False


@lru_cache(None)
def kind_of(text: str) -> Kind:
    """The kind of the type of this text; what is no array of numbers (a semaphore) has the dtype object."""
    match = re.match(r"(tensor|vector|memref)<((?:\d+x)*)(.+)>$", text)
    if not match:
        return _scalar(text)
    container, sizes, rest = match.groups()
    element = _scalar(_first(rest))
    return element._replace(shape=tuple(map(int, sizes.split("x")[:-1])), is_memory=container == "memref")


def _first(text: str) -> str:
    """The text before the first comma that is not in brackets."""
    depth = 0
    for i, character in enumerate(text):
        depth += (character in "<([") - (character in ">)]")
        if character == "," and not depth:
            return text[:i]
    return text


def _scalar(text: str) -> Kind:
    if text.startswith("!tt.ptr<"):
        return Kind((), _ADDRESS, _scalar(_first(text[len("!tt.ptr<") : -1])).dtype)
    return Kind((), np.dtype(_NAMES[text]) if text in _NAMES else np.dtype(object))


def python_of(attribute: Any) -> Any:
    """An attribute as a number, a text, a list, a dict or an array; its own text where there is nothing closer."""
    if isinstance(attribute, ir.DenseElementsAttr):
        return _dense(attribute)
    if isinstance(attribute, ir.ArrayAttr):
        return [python_of(a) for a in attribute]
    if isinstance(attribute, ir.DictAttr):
        return {a.name: python_of(a.attr) for a in attribute}
    if isinstance(attribute, ir.StringAttr):
        return _text(attribute)
    if isinstance(attribute, ir.FlatSymbolRefAttr | ir.BoolAttr | ir.IntegerAttr | ir.FloatAttr):
        return attribute.value
    return list(attribute) if str(attribute).startswith("array<") else str(attribute)


def _text(attribute: Any) -> str | bytes:
    """A text, or the bytes that are none."""
    found = attribute.value_bytes
    try:
        return found.decode()
    except UnicodeDecodeError:
        return found


def _dense(attribute: Any) -> Any:
    kind = kind_of(str(attribute.type))
    if attribute.is_splat:
        return filled(kind, python_of(attribute.get_splat_value()))
    return np.array(list(attribute)).astype(kind.dtype).reshape(kind.shape)


def filled(kind: Kind, number: Any) -> np.ndarray:
    """An array of one number; an integer as the bits that it has in the type."""
    if isinstance(number, np.ndarray):
        return number
    if kind.dtype.kind == "b":
        return np.full(kind.shape, number != 0)
    return np.full(kind.shape, number, np.int64 if isinstance(number, int) else np.float64).astype(kind.dtype)


def poison(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """What memory holds that nobody has written: NaN, or a number that no test means."""
    dtype = np.dtype(dtype)
    if dtype.kind in "fV" and dtype.name not in ("int2", "int4", "uint2", "uint4"):
        return np.full(shape, np.nan).astype(dtype)
    if dtype.kind == "b":
        return np.ones(shape, bool)
    return np.full(shape, -0x32323233, np.int64).astype(dtype)


def is_float(dtype: Any) -> bool:
    """Whether a dtype is of floats, those of ml_dtypes among them."""
    dtype = np.dtype(dtype)
    return dtype.kind == "f" or (dtype.kind == "V" and dtype.name.startswith(("bfloat", "float")))
