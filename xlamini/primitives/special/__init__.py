"""Special functions that are primitives: what XLA has an op for, and those whose derivatives are not their parts'."""

from xlamini.primitives.special.error_function import erf as erf
from xlamini.primitives.special.error_function import erf_inv as erf_inv
from xlamini.primitives.special.error_function import erfc as erfc
