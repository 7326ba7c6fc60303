"""`jax.experimental.pjit`: `jit` by its older name."""

from xlamini.as_jax.missing_names import fall_through
from xlamini.staging.run.jit_function import jit as pjit

__getattr__ = fall_through(__name__)
