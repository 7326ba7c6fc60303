"""Special functions that are primitives: those with an XLA op, and those with derivatives of their own."""

from xlamini.primitives.special.error_function import erf as erf
from xlamini.primitives.special.error_function import erf_inv as erf_inv
from xlamini.primitives.special.error_function import erfc as erfc
