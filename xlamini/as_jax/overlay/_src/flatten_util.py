"""`jax._src.flatten_util`."""

from xlamini.as_jax.missing_names import fall_through
from xlamini.flatten_util import ravel_pytree as ravel_pytree

__getattr__ = fall_through(__name__)
