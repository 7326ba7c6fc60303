"""Special functions that are primitives: those with an XLA op, and those with derivatives of their own."""

from xlamini.primitives.elementwise.special.error_function import erf as erf, erf_inv as erf_inv, erfc as erfc
