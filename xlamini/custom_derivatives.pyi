# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.transforms.custom.closure_convert import closure_convert as closure_convert
from xlamini.transforms.custom.custom_gradient import custom_gradient as custom_gradient
from xlamini.transforms.custom.custom_jvp import custom_jvp as custom_jvp, custom_jvp_call_p as custom_jvp_call_p
from xlamini.transforms.custom.custom_vjp import custom_vjp as custom_vjp
from xlamini.transforms.custom.custom_vjp import custom_vjp_call_p as custom_vjp_call_p
from xlamini.transforms.custom.custom_vjp import remat_opt_p as remat_opt_p
from xlamini.transforms.custom.linear_call import linear_call as linear_call
from xlamini.transforms.custom.symbolic_zero import (
    custom_vjp_primal_tree_values as custom_vjp_primal_tree_values, CustomVJPPrimal as CustomVJPPrimal,
    SymbolicZero as SymbolicZero, zero_from_primal as zero_from_primal,
)
