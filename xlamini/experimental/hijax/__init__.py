"""Types and primitives of one's own, as classes: `jax.experimental.hijax`.

    from xlamini.experimental.hijax import HiPrim

    class Cube(HiPrim):
        def __init__(self, x_aval):
            self.in_avals, self.out_aval, self.params = (x_aval,), x_aval, {}
            super().__init__()

        def expand(self, x):                      # what it computes, by other operations
            return x * x * x

        def vjp_fwd(self, nzs_in, x):             # for reverse mode: the output, and residuals
            return self(x), x

        def vjp_bwd_retval(self, x, ct):          # residuals, cotangent -> cotangents of the arguments
            return (3 * x * x * ct,)

    def cube(x):
        return Cube(xlamini.typeof(x))(x)

A `HiType` is a type of values that are made of several arrays and are one variable of a program. docs/extending.md has
an example of both.

What is here: `primitive.py` what users derive from, and `operation.py` its base, with the rules; `hi_call.py` one call
of it; `call.py` the equation of the call, the primitive `call_hi_primitive`; `linear.py` that of its derivative;
`derived_rules.py` rules that follow from others; `batch_rules.py` a
primitive mapped over an axis; `types.py` types of users; `low_level.py` `HiPrimitive`; `boxes.py` mutable values;
`mutable_types.py` types of users whose values change.

What is not here: how a variable of a user's type becomes arrays (core/program/hi_types.py, interpreters/expand.py).
"""

from xlamini.core.stubs import attach_stub as _attach_stub

__getattr__, __dir__, __all__ = _attach_stub(__name__)
