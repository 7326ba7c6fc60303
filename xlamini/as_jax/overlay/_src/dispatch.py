"""`jax._src.dispatch`."""

from xlamini.as_jax.missing_names import fall_through
from xlamini.as_jax.overlay.primitive import apply_primitive as apply_primitive
from xlamini.runtime.effects import effects_barrier as wait_for_tokens

__getattr__ = fall_through(__name__)
