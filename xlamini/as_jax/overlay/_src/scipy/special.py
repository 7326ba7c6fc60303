"""`jax._src.scipy.special`: the functions, by the names that they have in `jax.scipy.special`."""

from xlamini.as_jax.missing_names import fall_through

__getattr__ = fall_through(__name__, "xlamini.scipy.special")
