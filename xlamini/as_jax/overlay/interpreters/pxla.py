"""`jax.interpreters.pxla`, which libraries import without a need."""

from xlamini.as_jax.missing_names import fall_through

__getattr__ = fall_through(__name__)
