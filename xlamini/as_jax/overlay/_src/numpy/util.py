"""`jax._src.numpy.util`: arguments in a dtype in common."""

from typing import Any

from xlamini import Array
from xlamini.as_jax.missing_names import fall_through
from xlamini.as_jax.overlay._src.dtypes import to_complex_dtype
from xlamini.dtypes import result_type
from xlamini.numpy import asarray

__getattr__ = fall_through(__name__)


def promote_dtypes_complex(*args: Any) -> list[Array]:
    """The arguments as arrays of the complex dtype that holds them all."""
    dtype = to_complex_dtype(result_type(*args))
    return [asarray(x, dtype) for x in args]
