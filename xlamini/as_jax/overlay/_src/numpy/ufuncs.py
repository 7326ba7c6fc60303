"""`jax._src.numpy.ufuncs`: the functions, by the names that they have in `jax.numpy`."""

from xlamini.as_jax.missing_names import fall_through

__getattr__ = fall_through(__name__, "xlamini.numpy")
