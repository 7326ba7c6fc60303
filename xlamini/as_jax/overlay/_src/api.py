"""`jax._src.api`: the transformations, by the names that they have in `jax`."""

from xlamini.as_jax.missing_names import fall_through

__getattr__ = fall_through(__name__, "xlamini")
