"""`jax._src.array`: reads the arrays in pickles that JAX wrote."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from xlamini import Array
from xlamini.as_jax.missing_names import fall_through
from xlamini.core.avals import ShapedArray
from xlamini.runtime import device_put_value

__getattr__ = fall_through(__name__)


def _reconstruct_array(fun: Callable[..., Any], args: Any, state: Any, aval_state: Mapping[str, Any]) -> Array:
    """The array on the default device, from NumPy's parts of it."""
    value = fun(*args)
    value.__setstate__(state)
    return device_put_value(value, aval=ShapedArray(value.shape, value.dtype, aval_state["weak_type"]))
