"""`jax._src.ad_util`."""

from xlamini.as_jax.missing_names import fall_through
from xlamini.primitives.elementwise import add_any as add_any_p
from xlamini.primitives.identity import stop_gradient_p as stop_gradient_p

__getattr__ = fall_through(__name__, "xlamini.as_jax.overlay.interpreters.ad")
