"""The precision of products: `Precision`, dot algorithms, and the forms in which users may give them."""

from __future__ import annotations

from dataclasses import replace
from enum import Enum
from typing import Any

from xlamini.core.flags.config import default_matmul_precision
from xlamini.primitives.products.dot_algorithm import Algorithm, DotAlgorithm, DotAlgorithmPreset


class Precision(Enum):
    """The rounding that accelerators may apply to operands of a product; on the CPU all three are equal.

    DEFAULT is the fastest (one bfloat16 or TF32 pass), HIGH slower and closer, HIGHEST the full precision of the dtype.

    >>> x = jnp.ones((2, 2))
    >>> print(xlamini.make_jaxpr(lambda x: jnp.matmul(x, x, precision=Precision.HIGH))(x))
    { lambda ; a:f32[2,2]. let
        b:f32[2,2] = dot_general[
          dimension_numbers=(([1], [0]), ([], []))
          precision=(Precision.HIGH, Precision.HIGH)
          preferred_element_type=float32
        ] a a
      in (b,) }
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    @classmethod
    def _missing_(cls, value: object) -> Precision | None:
        """The level of another name for it, such as 'float32'; None is the default."""
        if value is None:
            return cls.DEFAULT
        return _LEVELS.get(value) if isinstance(value, str) else None

    def __repr__(self) -> str:
        return f"Precision.{self.name}"

    def __str__(self) -> str:
        return self.name


PrecisionLike = str | Precision | tuple[str, str] | tuple[Precision, Precision] | Algorithm | None
"""What products take as `precision`: a Precision or its name, a pair, a DotAlgorithm or the preset of one.

>>> def square(x, precision: PrecisionLike = None):
...     return jnp.matmul(x, x, precision=precision)
>>> square(jnp.ones((2, 2)), "highest")[0], square(jnp.ones((2, 2)), "BF16_BF16_F32")[0]
(Array([2., 2.], dtype=float32), Array([2., 2.], dtype=float32))
"""
CanonicalPrecision = tuple[Precision, Precision] | Algorithm | None

_LEVELS = {
    **{p.name.lower(): p for p in Precision},
    "bfloat16": Precision.DEFAULT,
    "fastest": Precision.DEFAULT,
    "tensorfloat32": Precision.HIGH,
    "bfloat16_3x": Precision.HIGH,
    "float32": Precision.HIGHEST,
}

_NAMES: dict[Any, Any] = {
    **_LEVELS,
    **{a.name: a for a in DotAlgorithmPreset},
    **{p: p for p in (*Precision, *DotAlgorithmPreset)},
}


def canonical_precision(precision: Any, name: str = "dot_general") -> CanonicalPrecision:
    """A user's `precision` argument as a pair (left operand, right operand), as an algorithm, or None for the default.

    None means the flag `default_matmul_precision`.
    """
    if precision is None:
        precision = default_matmul_precision.value
        if precision is None:
            return None
    if isinstance(precision, DotAlgorithm):
        return precision
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
        "a pair of these, a DotAlgorithmPreset or a DotAlgorithm"
    )


def swap(precision: CanonicalPrecision) -> CanonicalPrecision:
    """The precision of the product with its operands exchanged."""
    if isinstance(precision, tuple):
        return precision[1], precision[0]
    if not isinstance(precision, DotAlgorithm):
        return precision
    return replace(
        precision,
        lhs_precision_type=precision.rhs_precision_type,
        rhs_precision_type=precision.lhs_precision_type,
        lhs_component_count=precision.rhs_component_count,
        rhs_component_count=precision.lhs_component_count,
    )


def precision_config(precision: CanonicalPrecision) -> str:
    """The attribute of this name of a StableHLO product, in MLIR's notation."""
    pair = precision if isinstance(precision, tuple) else (Precision.DEFAULT, Precision.DEFAULT)
    return f"[{', '.join(f'#stablehlo<precision {p.name}>' for p in pair)}]"
