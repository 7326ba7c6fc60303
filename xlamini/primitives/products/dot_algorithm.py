"""Exact recipes for products: `DotAlgorithm`, the presets of it, and how a platform without them follows one.

XLA's compilers for GPU and TPU take an algorithm as it is written. The one for CPUs supports few of them, and not for
all shapes: there the operands are rounded to the algorithm's dtypes, multiplied and summed in its dtype, in one
product.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from xlamini.core import Avals, check_user_dtype
from xlamini.core.program.form import Platform
from xlamini.primitives.elementwise.complex import part_dtype
from xlamini.primitives.elementwise.convert_element_type import convert, reduce_precision
from xlamini.primitives.forms.cpu.products.complex_products import by_parts
from xlamini.primitives.forms.cpu.products.operand_dtypes import Numbers, Product
from xlamini.primitives.products.dot_dtypes import mixed_form


@dataclass(frozen=True)
class DotAlgorithm:
    """A recipe of one's own: dtypes of the operands and of the sum, and in how many products of how many parts.

    >>> DotAlgorithm("bfloat16", "bfloat16", "float32").num_primitive_operations
    1
    """

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    allow_imprecise_accumulation: bool = False


class DotAlgorithmPreset(Enum):
    """An exact recipe: dtypes of left and right operand and of the sum, and how many products make one (X3, X6, X9).

    >>> x = jnp.array([1.001])
    >>> jnp.dot(x, x), jnp.dot(x, x, precision=DotAlgorithmPreset.BF16_BF16_F32)
    (Array(1.002001, dtype=float32), Array(1., dtype=float32))
    """

    DEFAULT = "DEFAULT"
    ANY_F8_ANY_F8_F32 = "ANY_F8_ANY_F8_F32"
    ANY_F8_ANY_F8_F32_FAST_ACCUM = "ANY_F8_ANY_F8_F32_FAST_ACCUM"
    ANY_F8_ANY_F8_ANY = "ANY_F8_ANY_F8_ANY"
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = "ANY_F8_ANY_F8_ANY_FAST_ACCUM"
    F16_F16_F16 = "F16_F16_F16"
    F16_F16_F32 = "F16_F16_F32"
    BF16_BF16_BF16 = "BF16_BF16_BF16"
    BF16_BF16_F32 = "BF16_BF16_F32"
    BF16_BF16_F32_X3 = "BF16_BF16_F32_X3"
    BF16_BF16_F32_X6 = "BF16_BF16_F32_X6"
    BF16_BF16_F32_X9 = "BF16_BF16_F32_X9"
    TF32_TF32_F32 = "TF32_TF32_F32"
    TF32_TF32_F32_X3 = "TF32_TF32_F32_X3"
    F32_F32_F32 = "F32_F32_F32"
    F64_F64_F64 = "F64_F64_F64"

    def __repr__(self) -> str:
        return f"DotAlgorithmPreset.{self.name}"

    def __str__(self) -> str:
        return self.name


Algorithm = DotAlgorithm | DotAlgorithmPreset


class AlgorithmParts(NamedTuple):
    """An algorithm in MLIR's terms: element types, and numbers of parts and products."""

    lhs: str
    rhs: str
    total: str
    lhs_parts: int = 1
    rhs_parts: int = 1
    products: int = 1
    fast: bool = False

    def __str__(self) -> str:
        return (
            f"#stablehlo.dot_algorithm<lhs_precision_type = {self.lhs}, rhs_precision_type = {self.rhs}, "
            f"accumulation_type = {self.total}, lhs_component_count = {self.lhs_parts}, "
            f"rhs_component_count = {self.rhs_parts}, num_primitive_operations = {self.products}, "
            f"allow_imprecise_accumulation = {str(self.fast).lower()}>"
        )


_DTYPES = {"f16": np.dtype(np.float16), "f32": np.dtype(np.float32), "f64": np.dtype(np.float64)}
_DTYPES["bf16"], _DTYPES["tf32"] = np.dtype(ml_dtypes.bfloat16), _DTYPES["f32"]
_NAMES = {dtype: name for name, dtype in _DTYPES.items() if name != "tf32"}


def recipe(algorithm: Algorithm, dtypes: Sequence[Any]) -> AlgorithmParts:
    """The recipe of an algorithm for operands of these dtypes; ValueError if it is not for them."""
    if isinstance(algorithm, DotAlgorithm):
        types = (algorithm.lhs_precision_type, algorithm.rhs_precision_type, algorithm.accumulation_type)
        counts = (algorithm.lhs_component_count, algorithm.rhs_component_count, algorithm.num_primitive_operations)
        fields: Any = (*map(_element_type, types), *counts, algorithm.allow_imprecise_accumulation)
        return AlgorithmParts(*fields)
    name = algorithm.name
    fast = name.endswith("_FAST_ACCUM")
    parts = name.removesuffix("_FAST_ACCUM").replace("ANY_F8", "ANYF8").lower().split("_")
    products = int(parts.pop()[1:]) if parts[-1].startswith("x") else 1
    left, right, total = parts
    if left == "anyf8":
        left, right = (_narrow_type(algorithm, d) for d in dtypes)
    return AlgorithmParts(left, right, "f32" if total == "any" else total, products=products, fast=fast)


def _element_type(dtype: Any) -> str:
    known = check_user_dtype(dtype, "DotAlgorithm")
    if known.name.startswith("float8_"):
        return f"f8{known.name.removeprefix('float8_').upper()}"
    if known not in _NAMES:
        raise TypeError(f"DotAlgorithm: {known} is no dtype to multiply in; take a float of 8 to 64 bits")
    return _NAMES[known]


def _narrow_type(algorithm: DotAlgorithmPreset, dtype: Any) -> str:
    if not dtype.name.startswith("float8_"):
        raise ValueError(
            f"dot_general: {algorithm} multiplies operands of 8 bits, got {dtype}; convert them to "
            "float8_e4m3fn with .astype, or take another precision"
        )
    return _element_type(dtype)


def supports(platform: str, recipe: AlgorithmParts) -> bool:
    """True if a platform's compiler supports an algorithm; otherwise rounded operands emulate it."""
    known = _KNOWN.get(platform, frozenset())
    if recipe.lhs.startswith("f8"):
        return "f8" in known and recipe.rhs.startswith("f8") and "f8E4M3FN" in recipe
    usual = AlgorithmParts(recipe.lhs, recipe.lhs, recipe.total, products=recipe.products)
    return recipe == usual and f"{recipe.lhs} {recipe.total} {recipe.products}" in known


_ON_TPU = frozenset({"bf16 f32 1", "bf16 f32 3", "bf16 f32 6"})
_ON_GPU = _ON_TPU | {"f8", "bf16 f32 9", "f16 f32 1", "tf32 f32 1", "tf32 f32 3", "f32 f32 1", "f64 f64 1"}
_KNOWN = {"tpu": _ON_TPU, "cuda": _ON_GPU, "gpu": _ON_GPU, "rocm": _ON_GPU}


def rounded_form(
    platform: Platform, avals: Avals, out: np.dtype, recipe: AlgorithmParts, numbers: Numbers
) -> Product | None:
    """The product of operands in the recipe's dtypes; None where they have these already.

    A platform without the algorithm rounds them to these, to emulate it, and to tf32, which is no dtype. Algorithms are
    of real numbers, so a complex product is several real ones.
    """
    if any(a.dtype.kind == "c" for a in avals):
        return mixed_form(platform, avals, out, numbers) or functools.partial(by_parts, numbers, part_dtype(out))
    names = (recipe.total, recipe.total) if recipe.products > 1 else (recipe.lhs, recipe.rhs)
    narrow = [name == "tf32" and not supports(platform.name, recipe) for name in names]
    dtypes = [_DTYPES.get(name, a.dtype) for name, a in zip(names, avals, strict=True)]
    total = _DTYPES.get(recipe.total, out)
    if not any(narrow) and total == out and dtypes == [a.dtype for a in avals]:
        return None
    return functools.partial(_product, dtypes, narrow, total, out, numbers)


def _product(
    dtypes: Sequence[np.dtype],
    narrow: Sequence[bool],
    total: np.dtype,
    out: np.dtype,
    numbers: Numbers,
    bind: Callable[..., Any],
    *operands: Any,
) -> Any:
    x, y = (
        reduce_precision(convert(x, dtype), 8, 10) if is_narrow else convert(x, dtype)
        for x, dtype, is_narrow in zip(operands, dtypes, narrow, strict=True)
    )
    return convert(bind(x, y, dimension_numbers=numbers, preferred_element_type=total), out)
