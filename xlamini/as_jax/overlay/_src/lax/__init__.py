"""`jax._src.lax`."""

from xlamini.as_jax.missing_names import fall_through

__getattr__ = fall_through(__name__)
