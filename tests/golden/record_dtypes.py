"""Record JAX's dtype tables into dtypes.json: `python record_dtypes.py` where JAX is installed.

A table is a list of rows; a row holds one word for each column: a dtype's name, with `*` when the
type is weak, or `-` where JAX raises. The operand `int32*` is a weakly typed array, `int` a Python
scalar's type.
"""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import jax
import ml_dtypes
import numpy as np
from jax._src.lax import lax

DTYPES = (
    "bool uint2 uint4 uint8 uint16 uint32 uint64 int2 int4 int8 int16 int32 int64 float4_e2m1fn "
    "float8_e3m4 float8_e4m3 float8_e4m3b11fnuz float8_e4m3fn float8_e4m3fnuz float8_e5m2 "
    "float8_e5m2fnuz float8_e8m0fnu bfloat16 float16 float32 float64 complex64 complex128"
).split()
SCALARS = {"int": int, "float": float, "complex": complex}
WEAK = ["int8*", "int32*", "bfloat16*", "float16*", "float32*", "complex64*"]
CLASSES = (
    "bool_ integer signedinteger unsignedinteger inexact floating complexfloating number generic "
    "float32 int64"
).split()


def main() -> None:
    operands = [*DTYPES, *SCALARS, *WEAK]
    golden = {
        "jax": jax.__version__,
        "dtypes": DTYPES,
        "operands": operands,
        "classes": CLASSES,
        "promote_types": {mode: table(promote, [*DTYPES, *SCALARS]) for mode in modes()},
        "result_type": {mode: table(result, operands) for mode in modes()},
        "short_name": [jax._src.dtypes.short_dtype_name(np.dtype(d)) for d in DTYPES],
        "itemsize_bits": [jax.dtypes.itemsize_bits(d) for d in DTYPES],
        "scalar_type_of": [jax.dtypes.scalar_type_of(np.dtype(d)).__name__ for d in DTYPES],
        "issubdtype": [
            " ".join(flag(jax.dtypes.issubdtype(d, getattr(np, c))) for c in CLASSES)
            for d in DTYPES
        ],
        "can_cast": [" ".join(flag(can_cast(a, b)) for b in DTYPES) for a in DTYPES],
    }
    Path(__file__).with_name("dtypes.json").write_text(json.dumps(golden, indent=1) + "\n")


def modes():
    """Set each mode while its table is made."""
    for x64 in (False, True):
        for promotion in ("standard", "strict"):
            with jax.enable_x64(x64), jax.numpy_dtype_promotion(promotion):
                yield f"x{64 if x64 else 32} {promotion}"


def table(combine, names):
    return [" ".join(combine(a, b) for b in names) for a in names]


def operand(name):
    if name.endswith("*"):
        return lax._convert_element_type(0, dtype(name[:-1]), weak_type=True)
    return SCALARS.get(name) or dtype(name)


def dtype(name):
    return np.dtype(getattr(ml_dtypes, name, name))


def promote(a, b):
    try:
        return jax.numpy.promote_types(operand(a), operand(b)).name
    except jax.dtypes.TypePromotionError:
        return "-"


def result(a, b):
    try:
        found, weak = jax.dtypes.result_type(operand(a), operand(b), return_weak_type_flag=True)
    except jax.dtypes.TypePromotionError:
        return "-"
    return found.name + "*" * weak


def can_cast(a, b):
    return jax.numpy.can_cast(dtype(a), dtype(b))


def flag(value):
    return str(int(bool(value)))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
