"""The elementwise primitives by JAX's names for them; each is its own function, so that `exp_p` is `exp`."""

from typing import Final

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

abs_p: Final = _arithmetic.abs
add_p: Final = _arithmetic.add
div_p: Final = _arithmetic.div
max_p: Final = _arithmetic.max
min_p: Final = _arithmetic.min
mul_p: Final = _arithmetic.mul
mulhi_p: Final = _arithmetic.mulhi
neg_p: Final = _arithmetic.neg
rem_p: Final = _arithmetic.rem
sign_p: Final = _arithmetic.sign
sub_p: Final = _arithmetic.sub

and_p: Final = _bitwise.bitwise_and
not_p: Final = _bitwise.bitwise_not
or_p: Final = _bitwise.bitwise_or
xor_p: Final = _bitwise.bitwise_xor
clz_p: Final = _bitwise.clz
population_count_p: Final = _bitwise.population_count
shift_left_p: Final = _bitwise.shift_left
shift_right_arithmetic_p: Final = _bitwise.shift_right_arithmetic
shift_right_logical_p: Final = _bitwise.shift_right_logical

eq_p: Final = _comparison.eq
eq_to_p: Final = _comparison.eq_to
ge_p: Final = _comparison.ge
gt_p: Final = _comparison.gt
le_p: Final = _comparison.le
le_to_p: Final = _comparison.le_to
lt_p: Final = _comparison.lt
lt_to_p: Final = _comparison.lt_to
ne_p: Final = _comparison.ne

complex_p: Final = _complex.complex
imag_p: Final = _complex.imag
real_p: Final = _complex.real

exp_p: Final = _exponential.exp
exp2_p: Final = _exponential.exp2
expm1_p: Final = _exponential.expm1
log_p: Final = _exponential.log
log1p_p: Final = _exponential.log1p
log2_p: Final = _exponential.log2
one_minus_square_p: Final = _one_minus_square.one_minus_square

acosh_p: Final = _hyperbolic.acosh
asinh_p: Final = _hyperbolic.asinh
atanh_p: Final = _hyperbolic.atanh
cosh_p: Final = _hyperbolic.cosh
logistic_p: Final = _hyperbolic.logistic
sinh_p: Final = _hyperbolic.sinh
tanh_p: Final = _hyperbolic.tanh

copy_p: Final = _identity.copy

cbrt_p: Final = _power.cbrt
pow_p: Final = _power.pow
rsqrt_p: Final = _power.rsqrt
sqrt_p: Final = _power.sqrt
square_p: Final = _power.square

ceil_p: Final = _rounding.ceil
floor_p: Final = _rounding.floor
is_finite_p: Final = _rounding.is_finite
nextafter_p: Final = _rounding.nextafter

acos_p: Final = _trigonometric.acos
asin_p: Final = _trigonometric.asin
atan_p: Final = _trigonometric.atan
atan2_p: Final = _trigonometric.atan2
cos_p: Final = _trigonometric.cos
sin_p: Final = _trigonometric.sin
tan_p: Final = _trigonometric.tan

bessel_i0e_p: Final = _bessel.bessel_i0e
bessel_i1e_p: Final = _bessel.bessel_i1e
erf_p: Final = _error_function.erf
erf_inv_p: Final = _error_function.erf_inv
erfc_p: Final = _error_function.erfc
digamma_p: Final = _gamma.digamma
lgamma_p: Final = _gamma.lgamma
polygamma_p: Final = _gamma.polygamma
zeta_p: Final = _gamma.zeta
regularized_incomplete_beta_p: Final = _incomplete_beta.regularized_incomplete_beta
igamma_p: Final = _incomplete_gamma.igamma
igammac_p: Final = _incomplete_gamma.igammac
igamma_grad_a_p: Final = _incomplete_gamma_derivative.igamma_grad_a
