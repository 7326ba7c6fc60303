"""Derivatives of the user's own: `custom_jvp`, `custom_vjp` and their kin."""

from xlamini.core.api_boundary import edge_of_face as _edge_of_face
from xlamini.transforms.custom.closure_convert import closure_convert
from xlamini.transforms.custom.custom_gradient import custom_gradient
from xlamini.transforms.custom.custom_jvp import custom_jvp, custom_jvp_call_p
from xlamini.transforms.custom.custom_vjp import custom_vjp
from xlamini.transforms.custom.custom_vjp_call import custom_vjp_call_p
from xlamini.transforms.custom.remat_opt import remat_opt_p
from xlamini.transforms.custom.symbolic_zero import (
    CustomVJPPrimal,
    SymbolicZero,
    custom_vjp_primal_tree_values,
    zero_from_primal,
)

__all__ = [
    "CustomVJPPrimal",
    "SymbolicZero",
    "closure_convert",
    "custom_gradient",
    "custom_jvp",
    "custom_jvp_call_p",
    "custom_vjp",
    "custom_vjp_call_p",
    "custom_vjp_primal_tree_values",
    "remat_opt_p",
    "zero_from_primal",
]

_edge_of_face(globals())
