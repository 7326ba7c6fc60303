"""The elementwise primitives by JAX's names for them; each is its own function, so that `exp_p` is `exp`."""

from xlamini.primitives.elementwise import (
    arithmetic as _arithmetic,
    bitwise as _bitwise,
    comparison as _comparison,
    complex as _complex,
    exponential as _exponential,
    hyperbolic as _hyperbolic,
    one_minus_square as _one_minus_square,
    power as _power,
    rounding as _rounding,
    trigonometric as _trigonometric,
)
from xlamini.primitives.elementwise.special import (
    bessel as _bessel,
    error_function as _error_function,
    gamma as _gamma,
    incomplete_beta as _incomplete_beta,
    incomplete_gamma as _incomplete_gamma,
    incomplete_gamma_derivative as _incomplete_gamma_derivative,
)
from xlamini.primitives.placement import identity as _identity

abs_p, add_p, div_p, max_p = _arithmetic.abs, _arithmetic.add, _arithmetic.div, _arithmetic.max
min_p, mul_p, mulhi_p, neg_p = _arithmetic.min, _arithmetic.mul, _arithmetic.mulhi, _arithmetic.neg
rem_p, sign_p, sub_p = _arithmetic.rem, _arithmetic.sign, _arithmetic.sub

and_p, not_p, or_p, xor_p = _bitwise.bitwise_and, _bitwise.bitwise_not, _bitwise.bitwise_or, _bitwise.bitwise_xor
clz_p, population_count_p = _bitwise.clz, _bitwise.population_count
shift_left_p, shift_right_arithmetic_p = _bitwise.shift_left, _bitwise.shift_right_arithmetic
shift_right_logical_p = _bitwise.shift_right_logical

eq_p, eq_to_p, ge_p, gt_p = _comparison.eq, _comparison.eq_to, _comparison.ge, _comparison.gt
le_p, le_to_p, lt_p, lt_to_p = _comparison.le, _comparison.le_to, _comparison.lt, _comparison.lt_to
ne_p = _comparison.ne

complex_p, imag_p, real_p = _complex.complex, _complex.imag, _complex.real

exp_p, exp2_p, expm1_p, log_p = _exponential.exp, _exponential.exp2, _exponential.expm1, _exponential.log
log1p_p, log2_p = _exponential.log1p, _exponential.log2
one_minus_square_p = _one_minus_square.one_minus_square

acosh_p, asinh_p, atanh_p, cosh_p = _hyperbolic.acosh, _hyperbolic.asinh, _hyperbolic.atanh, _hyperbolic.cosh
logistic_p, sinh_p, tanh_p = _hyperbolic.logistic, _hyperbolic.sinh, _hyperbolic.tanh

copy_p = _identity.copy

cbrt_p, pow_p, rsqrt_p, sqrt_p = _power.cbrt, _power.pow, _power.rsqrt, _power.sqrt
square_p = _power.square

ceil_p, floor_p, is_finite_p, nextafter_p = _rounding.ceil, _rounding.floor, _rounding.is_finite, _rounding.nextafter

acos_p, asin_p, atan_p, atan2_p = _trigonometric.acos, _trigonometric.asin, _trigonometric.atan, _trigonometric.atan2
cos_p, sin_p, tan_p = _trigonometric.cos, _trigonometric.sin, _trigonometric.tan

bessel_i0e_p, bessel_i1e_p = _bessel.bessel_i0e, _bessel.bessel_i1e
erf_p, erf_inv_p, erfc_p = _error_function.erf, _error_function.erf_inv, _error_function.erfc
digamma_p, lgamma_p, polygamma_p, zeta_p = _gamma.digamma, _gamma.lgamma, _gamma.polygamma, _gamma.zeta
regularized_incomplete_beta_p = _incomplete_beta.regularized_incomplete_beta
igamma_p, igammac_p = _incomplete_gamma.igamma, _incomplete_gamma.igammac
igamma_grad_a_p = _incomplete_gamma_derivative.igamma_grad_a
