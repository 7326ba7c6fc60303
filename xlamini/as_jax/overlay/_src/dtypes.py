"""`jax._src.dtypes`."""

from typing import Any

import numpy as np

from xlamini.as_jax.missing_names import fall_through
from xlamini.core.dtypes import (
    ExtendedDType as Extended,
    canonicalize_dtype as canonicalize_dtype,
    check_user_dtype,
    finfo as finfo,
    is_weak as is_weakly_typed,
    issubdtype as issubdtype,
    python_scalar_dtypes as python_scalar_types_to_dtypes,
    result_type as result_type,
    short_name as short_dtype_name,
)
from xlamini.core.errors import TypePromotionError as TypePromotionError
from xlamini.primitives.base.promotion import float_of
from xlamini.typing import DTypeLike

__getattr__ = fall_through(__name__)

DType = np.dtype
python_scalar_types = set(python_scalar_types_to_dtypes)
int_, uint, float_, complex_ = np.int64, np.uint64, np.float64, np.complex128


class ExtendedDType(Extended):
    """A dtype of which a library says by `_rules`, as in JAX, what it is made of and how its tangents add up."""

    _rules: Any

    @property
    def physical_shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self._rules.physical_element_aval(self).shape

    @property
    def physical_dtype(self) -> np.dtype:  # type: ignore[override]
        return self._rules.physical_element_aval(self).dtype

    @property
    def has_tangents(self) -> bool:  # type: ignore[override]
        return self._rules.tangent_dtype(self) == self

    def converts(self, dtype: Any) -> bool:
        return self._rules.convert_to(dtype, self) and self._rules.convert_from(self, dtype)

    def add(self, x: Any, y: Any) -> Any:
        return self._rules.add(self, x, y)

    def zero(self) -> Any:
        return self._rules.zero(self)


def supports_inf(dtype: DTypeLike) -> bool:
    """Whether a dtype of floats has infinities."""
    return bool(np.isinf(np.asarray(np.inf).astype(np.dtype(dtype)).astype(np.float64)))


def dtype(x: Any) -> Any:
    """The dtype of a value, or the canonical one of a dtype."""
    return result_type(x)


def default_int_dtype() -> np.dtype:
    """The dtype of a Python int."""
    return canonicalize_dtype(int)


def default_uint_dtype() -> np.dtype:
    """The unsigned dtype of as many bits as a Python int has."""
    return canonicalize_dtype(np.uint64)


def default_float_dtype() -> np.dtype:
    """The dtype of a Python float."""
    return canonicalize_dtype(float)


def default_complex_dtype() -> np.dtype:
    """The dtype of a Python complex number."""
    return canonicalize_dtype(complex)


default_types = {
    "b": lambda: np.dtype(bool),
    "i": default_int_dtype,
    "u": default_uint_dtype,
    "f": default_float_dtype,
    "c": default_complex_dtype,
}
"""The function of the default dtype of each kind."""


def check_and_canonicalize_user_dtype(dtype: DTypeLike, fun_name: str | None = None) -> Any:
    """The canonical dtype of one that was asked for by name."""
    return check_user_dtype(dtype, fun_name or "dtype")


def to_inexact_dtype(dtype: DTypeLike) -> np.dtype:
    """The dtype of the values of a function of floats for numbers of `dtype`."""
    return np.dtype(dtype) if issubdtype(dtype, np.inexact) else float_of(np.dtype(dtype))


def to_numeric_dtype(dtype: DTypeLike) -> np.dtype:
    """Integers for booleans."""
    return default_int_dtype() if np.dtype(dtype) == bool else np.dtype(dtype)


def safe_to_cast(input_dtype_or_value: Any, output_dtype_or_value: Any) -> bool:
    """Whether promoting the two gives the second, whose dtype does not adapt."""
    given, wanted = dtype(input_dtype_or_value), dtype(output_dtype_or_value)
    return given == wanted or result_type(input_dtype_or_value, wanted) == wanted


_EIGHT_BYTES = {np.dtype(name) for name in ("int64", "uint64", "float64", "complex128")}


def to_complex_dtype(dtype: DTypeLike) -> np.dtype:
    """The complex dtype of which the numbers have the precision of `dtype`."""
    return np.dtype(np.complex128 if np.dtype(dtype) in _EIGHT_BYTES else np.complex64)
