"""`jax._src`: the few names of JAX's inside that libraries read."""

from xlamini.as_jax.missing_names import fall_through

__getattr__ = fall_through(__name__)
