"""How exactly products are computed: `Precision`, `DotAlgorithmPreset`, and what users may write for them."""

from __future__ import annotations

from enum import Enum
from typing import Any

from xlamini.core.config import default_matmul_precision


class Precision(Enum):
    """How much an accelerator may round the operands of a product; on the CPU all three are the same.

    DEFAULT is the fastest (one bfloat16 or TF32 pass), HIGH slower and closer, HIGHEST the full precision of the dtype.
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    def __repr__(self) -> str:
        return f"Precision.{self.name}"

    def __str__(self) -> str:
        return self.name


class DotAlgorithmPreset(Enum):
    """An exact recipe: dtypes of left and right operand and of the sum, and how many products make one (X3, X6, X9)."""

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


CanonicalPrecision = tuple[Precision, Precision] | DotAlgorithmPreset | None

_NAMES: dict[Any, Any] = {
    **{p.name.lower(): p for p in Precision},
    "bfloat16": Precision.DEFAULT,
    "fastest": Precision.DEFAULT,
    "tensorfloat32": Precision.HIGH,
    "bfloat16_3x": Precision.HIGH,
    "float32": Precision.HIGHEST,
    **{a.name: a for a in DotAlgorithmPreset if a.name != "DEFAULT"},
    **{p: p for p in (*Precision, *DotAlgorithmPreset)},
}


def canonical_precision(precision: Any, name: str = "dot_general") -> CanonicalPrecision:
    """A user's `precision` argument as a pair (left operand, right operand), as an algorithm, or None for the default.

    None stands for the flag `default_matmul_precision`.
    """
    if precision is None:
        precision = default_matmul_precision.value
        if precision is None:
            return None
    if isinstance(precision, tuple | list) and len(precision) == 2:
        left, right = map(_NAMES.get, precision)
        if isinstance(left, Precision) and isinstance(right, Precision):
            return left, right
    elif precision in _NAMES:
        one: Precision | DotAlgorithmPreset = _NAMES[precision]
        if one is DotAlgorithmPreset.DEFAULT:
            return None
        return (one, one) if isinstance(one, Precision) else one
    raise ValueError(
        f"{name}: unknown precision {precision!r}; write None, 'default', 'high', 'highest', a Precision, "
        "a pair of these, or a DotAlgorithmPreset"
    )


def swapped(precision: CanonicalPrecision) -> CanonicalPrecision:
    """The precision of the product with its operands exchanged."""
    return (precision[1], precision[0]) if isinstance(precision, tuple) else precision


def hlo_attributes(precision: CanonicalPrecision, lhs: str, rhs: str) -> dict[str, str]:
    """The attributes of a StableHLO product for operands of these element types, in MLIR's notation."""
    pair = precision if isinstance(precision, tuple) else (Precision.DEFAULT, Precision.DEFAULT)
    config = ", ".join(f"#stablehlo<precision {p.name}>" for p in pair)
    attributes = {"precision_config": f"[{config}]"}
    if isinstance(precision, DotAlgorithmPreset):
        attributes["algorithm"] = _algorithm(precision.name, lhs, rhs)
    return attributes


def _algorithm(name: str, lhs: str, rhs: str) -> str:
    fast = name.endswith("_FAST_ACCUM")
    parts = name.removesuffix("_FAST_ACCUM").replace("ANY_F8", "ANYF8").lower().split("_")
    products = int(parts.pop()[1:]) if parts[-1].startswith("x") else 1
    left, right, total = parts
    left, right = (lhs, rhs) if left == "anyf8" else (left, right)
    total = "f32" if total == "any" else total
    return (
        f"#stablehlo.dot_algorithm<lhs_precision_type = {left}, rhs_precision_type = {right}, "
        f"accumulation_type = {total}, lhs_component_count = 1, rhs_component_count = 1, "
        f"num_primitive_operations = {products}, allow_imprecise_accumulation = {str(fast).lower()}>"
    )
