"""`jax.extend.core.primitives`: the primitives by name."""

from xlamini.as_jax.missing_names import fall_through
from xlamini.core.primitive import Primitive
from xlamini.custom_derivatives import (
    custom_jvp_call_p as custom_jvp_call_p,
    custom_vjp_call_p as custom_vjp_call_p,
)
from xlamini.primitives.elementwise import add_any as add_jaxvals_p
from xlamini.staging.call.call import jit_p as jit_p

__getattr__ = fall_through(__name__, "xlamini.lax")

call_p, closed_call_p = Primitive("call"), Primitive("closed_call")  # keys of tables; no program has them, nor rules
