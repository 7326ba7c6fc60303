"""`jax._src.earray`: arrays of dtypes that libraries define."""

from xlamini.as_jax.missing_names import fall_through
from xlamini.core import ShapedArray
from xlamini.runtime import ArrayImpl
from xlamini.runtime.keys import PRNGKeyArray

__getattr__ = fall_through(__name__)


def EArray(aval: ShapedArray, data: ArrayImpl) -> PRNGKeyArray:
    """An array of the type `aval` from the array that its elements are made of."""
    return PRNGKeyArray(aval.dtype, data)
