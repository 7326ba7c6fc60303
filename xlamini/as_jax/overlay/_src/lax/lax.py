"""`jax._src.lax.lax`: the operations, by the names that they have in `jax.lax`."""

from xlamini.as_jax.missing_names import fall_through

__getattr__ = fall_through(__name__, "xlamini.lax")
