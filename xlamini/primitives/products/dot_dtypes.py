"""Products of operands and results of different dtypes: the casts that XLA does not make itself."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xlamini.core import Avals, itemsize_bits, result_type
from xlamini.core.program.form import Platform
from xlamini.primitives.base.dtype_kinds import INTEGER, kind_of
from xlamini.primitives.elementwise.complex import real
from xlamini.primitives.elementwise.convert_element_type import convert
from xlamini.primitives.forms.cpu.products.operand_dtypes import Numbers, Product


def mixed_form(platform: Platform, avals: Avals, out: np.dtype, numbers: Numbers) -> Product | None:
    """None where XLA multiplies operands of these dtypes into the result's."""
    dtypes = [a.dtype for a in avals]
    common = _accepted(platform, dtypes, out)
    # XLA converts no complex numbers to real ones, so a real result is the real part.
    whole = result_type(*dtypes, out) if out.kind != "c" and any(d.kind == "c" for d in dtypes) else out
    return None if {*dtypes} == {common} and whole == out else functools.partial(_product, common, whole, out, numbers)


def _product(
    common: np.dtype, whole: np.dtype, out: np.dtype, numbers: Numbers, bind: Callable[..., Any], x: Any, y: Any
) -> Any:
    x, y = convert(x, common), convert(y, common)
    product = bind(x, y, dimension_numbers=numbers, preferred_element_type=whole)
    return product if whole == out else convert(real(product), out)


def _accepted(platform: Platform, dtypes: Sequence[np.dtype], out: np.dtype) -> np.dtype:
    """The dtype of operands that XLA multiplies into the result's: its own where they are of different kinds."""
    first, second = dtypes
    if first == second and _of_one_kind(first, out) and not _is_too_narrow(platform, first, out):
        return first
    return out if _are_narrow(dtypes) else result_type(*dtypes, out)


def _of_one_kind(dtype: Any, other: Any) -> bool:
    """Whether both are integers, or both floats: XLA widens such operands itself, and multiplies narrow ones faster."""
    return kind_of(dtype) is kind_of(other) or kind_of(dtype) | kind_of(other) in INTEGER


def _are_narrow(dtypes: Sequence[Any]) -> bool:
    """True for dtypes of less than 8 bits and floats of 8, which promote with no other dtype."""
    return any(itemsize_bits(d) < 8 or d.name.startswith("float8_") for d in dtypes)


def _is_too_narrow(platform: Platform, dtype: Any, out: Any) -> bool:
    """True if XLA's CPU compiler fails on such operands of a wider result, or rounds its terms to powers of 2."""
    return platform.name == "cpu" and dtype != out and (itemsize_bits(dtype) < 8 or dtype.name == "float8_e8m0fnu")
