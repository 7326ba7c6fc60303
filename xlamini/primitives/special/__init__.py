"""Special functions that are primitives: what XLA has an op for, and those whose derivatives are not their parts'."""

from xlamini.primitives.special.error_function import erf as erf, erf_inv as erf_inv, erfc as erfc
from xlamini.primitives.special.gamma import (
    digamma as digamma,
    lgamma as lgamma,
    polygamma as polygamma,
    zeta as zeta,
)
from xlamini.primitives.special.incomplete_gamma import igamma as igamma, igammac as igammac
from xlamini.primitives.special.incomplete_gamma_derivative import (
    igamma_grad_a as igamma_grad_a,
    random_gamma_grad as random_gamma_grad,
)
