"""`jax.experimental`."""

from xlamini.as_jax.missing_names import fall_through
from xlamini.as_jax.overlay.refusals import refusing

__getattr__ = fall_through(__name__, "xlamini.experimental")

cur_qdd = refusing("jax.experimental.cur_qdd", "there are no types with quasi-dynamic data")
