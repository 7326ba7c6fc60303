"""`jax._src.core`: `jax.core` and `jax.extend.core` in one."""


from xlamini.as_jax.missing_names import fall_through
from xlamini.as_jax.overlay.core import *
from xlamini.extend import trace_is_clean as trace_state_clean
from xlamini.interpreters.physical import physical_aval as physical_aval

__getattr__ = fall_through(__name__, "xlamini.as_jax.overlay.extend.core")
