"""`jax.interpreters`: the rules of primitives, one module for each transformation."""

from xlamini.as_jax.missing_names import fall_through

__getattr__ = fall_through(__name__)
