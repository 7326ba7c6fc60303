"""`jax._src.interpreters`: the public one's modules."""

from xlamini.as_jax.missing_names import fall_through
from xlamini.as_jax.overlay.interpreters import pxla as pxla

__getattr__ = fall_through(__name__)
