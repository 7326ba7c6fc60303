"""`jax._src.core`: `jax.core` and `jax.extend.core` in one."""


from xlamini.as_jax.missing_names import fall_through
from xlamini.as_jax.overlay.core import *  # noqa: F403
from xlamini.core.state import state
from xlamini.interpreters.physical import physical_aval as physical_aval

__getattr__ = fall_through(__name__, "xlamini.as_jax.overlay.extend.core")


def trace_state_clean() -> bool:
    """Whether nothing is being traced."""
    return state.builder is None
