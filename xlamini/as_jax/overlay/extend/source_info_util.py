"""`jax.extend.source_info_util`: the user's line of an equation."""

from xlamini.as_jax.missing_names import fall_through

__getattr__ = fall_through(__name__)
