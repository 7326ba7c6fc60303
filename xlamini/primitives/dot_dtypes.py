"""Lowering of `dot_general` for operands and results of different dtypes: the casts that XLA does not make itself."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xlamini.core import Values, itemsize_bits, result_type
from xlamini.primitives.kinds import INTEGER, kind_of


def mixed_product(ctx: Any, operands: Values, attributes: dict[str, str]) -> Any:
    """The lowered product of operands and a result of different dtypes.

    XLA converts no complex numbers to real ones, so a real result is the real part.
    """
    operands = _in_accepted_dtypes(ctx, operands)
    out, dtypes = ctx.aval_out, [a.dtype for a in ctx.avals_in]
    if out.dtype.kind == "c" or all(d.kind != "c" for d in dtypes):
        return ctx.op("stablehlo.dot_general", *operands, **attributes)
    whole = out.update(dtype=result_type(*dtypes, out.dtype))
    made = ctx.op("stablehlo.dot_general", *operands, avals=[whole], **attributes)
    real = ctx.op("stablehlo.real", made, avals=[out.update(dtype=np.zeros((), whole.dtype).real.dtype)])
    return ctx.op("stablehlo.convert", real)


def _in_accepted_dtypes(ctx: Any, operands: Values) -> list[Any]:
    """Operands in dtypes that XLA multiplies into the result's: its own where they are of different kinds."""
    dtypes = [a.dtype for a in ctx.avals_in]
    out = ctx.aval_out.dtype
    if dtypes[0] == dtypes[1] and _of_one_kind(dtypes[0], out) and not _is_too_narrow(ctx, dtypes[0], out):
        return list(operands)
    common = out if _are_narrow(dtypes) else result_type(*dtypes, out)
    return [
        x if a.dtype == common else ctx.op("stablehlo.convert", x, avals=[a.update(dtype=common)])
        for x, a in zip(operands, ctx.avals_in, strict=True)
    ]


def _of_one_kind(dtype: Any, other: Any) -> bool:
    """Whether both are integers, or both floats: XLA widens such operands itself, and multiplies narrow ones faster."""
    return kind_of(dtype) is kind_of(other) or kind_of(dtype) | kind_of(other) in INTEGER


def _are_narrow(dtypes: Sequence[Any]) -> bool:
    """True for dtypes of less than 8 bits and floats of 8, which promote with no other dtype."""
    return any(itemsize_bits(d) < 8 or d.name.startswith("float8_") for d in dtypes)


def _is_too_narrow(ctx: Any, dtype: Any, out: Any) -> bool:
    """True if XLA's CPU compiler fails on such operands of a wider result, or rounds its terms to powers of 2."""
    return ctx.platform == "cpu" and dtype != out and (itemsize_bits(dtype) < 8 or dtype.name == "float8_e8m0fnu")
