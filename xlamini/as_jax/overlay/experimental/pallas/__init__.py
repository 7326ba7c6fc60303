"""`jax.experimental.pallas`: what libraries name when they are imported; there are no kernels, and calls refuse."""

from xlamini.as_jax.missing_names import fall_through
from xlamini.as_jax.overlay.refusals import refusing

__getattr__ = fall_through(__name__)

_INSTEAD = "write the kernel with xlamini.numpy and lax, or call a compiled one through xlamini.ffi"

pallas_call = refusing("pallas_call", _INSTEAD)
program_id = refusing("pallas.program_id", _INSTEAD)
