"""`jax._src.dtypes`."""

from typing import Any

import numpy as np

from xlamini.as_jax.missing_names import fall_through
from xlamini.core.dtypes import ExtendedDType as Extended, finfo as finfo
from xlamini.core.errors import TypePromotionError as TypePromotionError
from xlamini.typing import DTypeLike

__getattr__ = fall_through(__name__)

DType = np.dtype


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


_EIGHT_BYTES = {np.dtype(name) for name in ("int64", "uint64", "float64", "complex128")}


def to_complex_dtype(dtype: DTypeLike) -> np.dtype:
    """The complex dtype of which the numbers have the precision of `dtype`."""
    return np.dtype(np.complex128 if np.dtype(dtype) in _EIGHT_BYTES else np.complex64)
