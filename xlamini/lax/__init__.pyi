# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.lax import linalg as linalg
from xlamini.lax.filling import empty as empty, full as full, full_like as full_like
from xlamini.lax.indexing import index_take as index_take
from xlamini.lax.primitives import (
    abs_p as abs_p, acos_p as acos_p, acosh_p as acosh_p, add_p as add_p, and_p as and_p, asin_p as asin_p,
    asinh_p as asinh_p, atan2_p as atan2_p, atan_p as atan_p, atanh_p as atanh_p, bessel_i0e_p as bessel_i0e_p,
    bessel_i1e_p as bessel_i1e_p, cbrt_p as cbrt_p, ceil_p as ceil_p, clz_p as clz_p, complex_p as complex_p,
    copy_p as copy_p, cos_p as cos_p, cosh_p as cosh_p, digamma_p as digamma_p, div_p as div_p, eq_p as eq_p,
    eq_to_p as eq_to_p, erf_inv_p as erf_inv_p, erf_p as erf_p, erfc_p as erfc_p, exp2_p as exp2_p, exp_p as exp_p,
    expm1_p as expm1_p, floor_p as floor_p, ge_p as ge_p, gt_p as gt_p, igamma_grad_a_p as igamma_grad_a_p,
    igamma_p as igamma_p, igammac_p as igammac_p, imag_p as imag_p, is_finite_p as is_finite_p, le_p as le_p,
    le_to_p as le_to_p, lgamma_p as lgamma_p, log1p_p as log1p_p, log2_p as log2_p, log_p as log_p,
    logistic_p as logistic_p,
    lt_p as lt_p, lt_to_p as lt_to_p, max_p as max_p, min_p as min_p, mul_p as mul_p, mulhi_p as mulhi_p, ne_p as ne_p,
    neg_p as neg_p, nextafter_p as nextafter_p, not_p as not_p, one_minus_square_p as one_minus_square_p,
    or_p as or_p, polygamma_p as polygamma_p,
    population_count_p as population_count_p, pow_p as pow_p, real_p as real_p,
    regularized_incomplete_beta_p as regularized_incomplete_beta_p, rem_p as rem_p, rsqrt_p as rsqrt_p,
    shift_left_p as shift_left_p, shift_right_arithmetic_p as shift_right_arithmetic_p,
    shift_right_logical_p as shift_right_logical_p, sign_p as sign_p, sin_p as sin_p, sinh_p as sinh_p,
    sqrt_p as sqrt_p, square_p as square_p, sub_p as sub_p, tan_p as tan_p, tanh_p as tanh_p, xor_p as xor_p,
    zeta_p as zeta_p,
)
from xlamini.lax.polynomials import polynomial as polynomial
from xlamini.lax.products import mul as mul, scaled_dot as scaled_dot
from xlamini.lax.ragged_exchange import ragged_all_to_all as ragged_all_to_all
from xlamini.lax.ragged_products import (
    ragged_dot as ragged_dot, ragged_dot_general as ragged_dot_general,
    RaggedDotDimensionNumbers as RaggedDotDimensionNumbers,
)
from xlamini.lax.shapes import (
    broadcast_like as broadcast_like, broadcast_shapes as broadcast_shapes, broadcast_to_rank as broadcast_to_rank,
    collapse as collapse, dtype as dtype, shape_as_value as shape_as_value,
)
from xlamini.primitives.base.accuracy import AccuracyMode as AccuracyMode, Tolerance as Tolerance
from xlamini.primitives.reductions.approx_top_k import (
    approx_max_k as approx_max_k, approx_min_k as approx_min_k, approx_top_k_p as approx_top_k_p,
)
from xlamini.primitives.reductions.arg_extrema import (
    argmax as argmax, argmax_p as argmax_p, argmin as argmin, argmin_p as argmin_p,
)
from xlamini.primitives.elementwise.arithmetic import (
    abs as abs, add as add, div as div, max as max, min as min, mulhi as mulhi, neg as neg, rem as rem, sign as sign,
    sub as sub,
)
from xlamini.primitives.elementwise.bitwise import (
    bitwise_and as bitwise_and, bitwise_not as bitwise_not, bitwise_or as bitwise_or, bitwise_xor as bitwise_xor,
    clz as clz, population_count as population_count, shift_left as shift_left,
    shift_right_arithmetic as shift_right_arithmetic, shift_right_logical as shift_right_logical,
)
from xlamini.primitives.collectives.axes import (
    axis_index as axis_index, axis_index_p as axis_index_p, axis_size as axis_size,
)
from xlamini.primitives.collectives.exchange import (
    all_to_all as all_to_all, all_to_all_p as all_to_all_p, pswapaxes as pswapaxes,
)
from xlamini.primitives.collectives.gathering import (
    all_gather as all_gather, all_gather_p as all_gather_p, psum_scatter as psum_scatter,
    reduce_scatter_p as reduce_scatter_p,
)
from xlamini.primitives.collectives.permute import (
    pbroadcast as pbroadcast, ppermute as ppermute, ppermute_p as ppermute_p, pshuffle as pshuffle,
)
from xlamini.primitives.collectives.reductions import (
    pmax as pmax, pmax_p as pmax_p, pmean as pmean, pmin as pmin, pmin_p as pmin_p, psum as psum, psum_p as psum_p,
)
from xlamini.primitives.collectives.sending import pcast as pcast, precv as precv, psend as psend
from xlamini.primitives.elementwise.comparison import eq as eq, ge as ge, gt as gt, le as le, lt as lt, ne as ne
from xlamini.primitives.elementwise.complex import (
    complex as complex, conj as conj, conj_p as conj_p, imag as imag, real as real,
)
from xlamini.primitives.shape.concatenate import (
    concatenate as concatenate, concatenate_p as concatenate_p, split as split, split_p as split_p,
)
from xlamini.primitives.elementwise.convert_element_type import (
    bitcast_convert_type as bitcast_convert_type, bitcast_convert_type_p as bitcast_convert_type_p,
    convert_element_type as convert_element_type, convert_element_type_p as convert_element_type_p,
    reduce_precision as reduce_precision, reduce_precision_p as reduce_precision_p,
)
from xlamini.primitives.reductions.cumulative import (
    cumlogsumexp as cumlogsumexp, cumlogsumexp_p as cumlogsumexp_p, cummax as cummax, cummax_p as cummax_p,
    cummin as cummin, cummin_p as cummin_p, cumprod as cumprod, cumprod_p as cumprod_p, cumsum as cumsum,
    cumsum_p as cumsum_p,
)
from xlamini.primitives.placement.dce_sink import dce_sink as dce_sink, dce_sink_p as dce_sink_p
from xlamini.primitives.placement.device_put import device_put_p as device_put_p
from xlamini.primitives.products.dot_algorithm import (
    DotAlgorithm as DotAlgorithm, DotAlgorithmPreset as DotAlgorithmPreset,
)
from xlamini.primitives.products.dot_general import (
    batch_matmul as batch_matmul, dot as dot, dot_general as dot_general, dot_general_p as dot_general_p,
    DotDimensionNumbers as DotDimensionNumbers,
)
from xlamini.primitives.indexing.dynamic_slice import (
    dynamic_index_in_dim as dynamic_index_in_dim, dynamic_slice as dynamic_slice,
    dynamic_slice_in_dim as dynamic_slice_in_dim, dynamic_slice_p as dynamic_slice_p,
)
from xlamini.primitives.indexing.dynamic_update_slice import (
    dynamic_update_index_in_dim as dynamic_update_index_in_dim, dynamic_update_slice as dynamic_update_slice,
    dynamic_update_slice_in_dim as dynamic_update_slice_in_dim, dynamic_update_slice_p as dynamic_update_slice_p,
)
from xlamini.primitives.elementwise.exponential import (
    exp as exp, exp2 as exp2, expm1 as expm1, log as log, log2 as log2, log1p as log1p,
)
from xlamini.primitives.fft import fft as fft, fft_p as fft_p, FftType as FftType
from xlamini.primitives.indexing.gather import (
    gather as gather, gather_p as gather_p, GatherDimensionNumbers as GatherDimensionNumbers,
    GatherScatterMode as GatherScatterMode,
)
from xlamini.primitives.elementwise.hyperbolic import (
    acosh as acosh, asinh as asinh, atanh as atanh, cosh as cosh, logistic as logistic, sinh as sinh,
    tanh as tanh,
)
from xlamini.primitives.placement.identity import (
    stage as stage, stage_p as stage_p, stop_gradient as stop_gradient, stop_gradient_p as stop_gradient_p,
)
from xlamini.primitives.shape.iota import broadcasted_iota as broadcasted_iota, iota as iota, iota_p as iota_p
from xlamini.primitives.placement.optimization_barrier import (
    optimization_barrier as optimization_barrier, optimization_barrier_p as optimization_barrier_p,
)
from xlamini.primitives.elementwise.one_minus_square import one_minus_square as one_minus_square
from xlamini.primitives.shape.pad import pad as pad, pad_p as pad_p
from xlamini.primitives.elementwise.power import (
    cbrt as cbrt, integer_pow as integer_pow, integer_pow_p as integer_pow_p, pow as pow, reciprocal as reciprocal,
    rsqrt as rsqrt, sqrt as sqrt, square as square,
)
from xlamini.primitives.base.precision import Precision as Precision, PrecisionLike as PrecisionLike
from xlamini.primitives.reductions.reductions import (
    reduce_and as reduce_and, reduce_and_p as reduce_and_p, reduce_max as reduce_max, reduce_max_p as reduce_max_p,
    reduce_min as reduce_min, reduce_min_p as reduce_min_p, reduce_or as reduce_or, reduce_or_p as reduce_or_p,
    reduce_prod as reduce_prod, reduce_prod_p as reduce_prod_p, reduce_sum as reduce_sum, reduce_sum_p as reduce_sum_p,
    reduce_xor as reduce_xor, reduce_xor_p as reduce_xor_p,
)
from xlamini.primitives.random.rng_bit_generator import (
    RandomAlgorithm as RandomAlgorithm, rng_bit_generator as rng_bit_generator,
    rng_bit_generator_p as rng_bit_generator_p,
)
from xlamini.primitives.random.rng_uniform import rng_uniform as rng_uniform, rng_uniform_p as rng_uniform_p
from xlamini.primitives.elementwise.rounding import (
    ceil as ceil, floor as floor, is_finite as is_finite, nextafter as nextafter, round as round, round_p as round_p,
    RoundingMethod as RoundingMethod,
)
from xlamini.primitives.indexing.scatter import (
    scatter as scatter, scatter_add as scatter_add, scatter_add_p as scatter_add_p, scatter_apply as scatter_apply,
    scatter_max as scatter_max, scatter_max_p as scatter_max_p, scatter_min as scatter_min,
    scatter_min_p as scatter_min_p, scatter_mul as scatter_mul, scatter_mul_p as scatter_mul_p, scatter_p as scatter_p,
    scatter_sub as scatter_sub, scatter_sub_p as scatter_sub_p, ScatterDimensionNumbers as ScatterDimensionNumbers,
)
from xlamini.primitives.elementwise.select import (
    clamp as clamp, clamp_p as clamp_p, select as select, select_n as select_n, select_n_p as select_n_p,
)
from xlamini.primitives.shape.shape import (
    broadcast as broadcast, broadcast_in_dim as broadcast_in_dim, broadcast_in_dim_p as broadcast_in_dim_p,
    expand_dims as expand_dims, reshape as reshape, reshape_p as reshape_p, rev as rev, rev_p as rev_p,
    squeeze as squeeze, squeeze_p as squeeze_p, transpose as transpose, transpose_p as transpose_p,
)
from xlamini.primitives.placement.sharding_constraint import sharding_constraint_p as sharding_constraint_p
from xlamini.primitives.shape.slice import (
    index_in_dim as index_in_dim, slice as slice, slice_in_dim as slice_in_dim, slice_p as slice_p,
)
from xlamini.primitives.reductions.sort import sort as sort, sort_key_val as sort_key_val, sort_p as sort_p
from xlamini.primitives.elementwise.special.bessel import bessel_i0e as bessel_i0e, bessel_i1e as bessel_i1e
from xlamini.primitives.elementwise.special.error_function import erf as erf, erf_inv as erf_inv, erfc as erfc
from xlamini.primitives.elementwise.special.gamma import (
    digamma as digamma, lgamma as lgamma, polygamma as polygamma, zeta as zeta,
)
from xlamini.primitives.elementwise.special.incomplete_beta import betainc as betainc
from xlamini.primitives.elementwise.special.incomplete_gamma_derivative import (
    igamma as igamma, igamma_grad_a as igamma_grad_a, igammac as igammac, random_gamma_grad as random_gamma_grad,
)
from xlamini.primitives.shape.stack import (
    stack as stack, stack_p as stack_p, unstack as unstack, unstack_p as unstack_p,
)
from xlamini.primitives.shape.tile import tile as tile, tile_p as tile_p
from xlamini.primitives.placement.tokens import (
    after_all as after_all, after_all_p as after_all_p, create_token as create_token, create_token_p as create_token_p,
)
from xlamini.primitives.reductions.top_k import top_k as top_k, top_k_p as top_k_p
from xlamini.primitives.elementwise.trigonometric import (
    acos as acos, asin as asin, atan as atan, atan2 as atan2, cos as cos, sin as sin, tan as tan,
)
from xlamini.primitives.windows.conv_forms import (
    conv as conv, conv_general_dilated_local as conv_general_dilated_local,
    conv_general_dilated_patches as conv_general_dilated_patches, conv_transpose as conv_transpose,
    conv_with_general_padding as conv_with_general_padding,
)
from xlamini.primitives.windows.conv_numbers import (
    conv_dimension_numbers as conv_dimension_numbers, conv_general_permutations as conv_general_permutations,
    conv_general_shape_tuple as conv_general_shape_tuple, conv_shape_tuple as conv_shape_tuple,
    conv_transpose_shape_tuple as conv_transpose_shape_tuple, ConvDimensionNumbers as ConvDimensionNumbers,
    ConvGeneralDilatedDimensionNumbers as ConvGeneralDilatedDimensionNumbers,
)
from xlamini.primitives.windows.convolution import (
    conv_general_dilated as conv_general_dilated, conv_general_dilated_p as conv_general_dilated_p,
)
from xlamini.primitives.windows.geometry import padtype_to_pads as padtype_to_pads
from xlamini.primitives.windows.reduce_window import (
    reduce_window_max_p as reduce_window_max_p, reduce_window_min_p as reduce_window_min_p,
    reduce_window_shape_tuple as reduce_window_shape_tuple, reduce_window_sum_p as reduce_window_sum_p,
)
from xlamini.primitives.windows.select import (
    select_and_gather_add_p as select_and_gather_add_p, select_and_scatter_add_p as select_and_scatter_add_p,
)
from xlamini.transforms.control_flow.associative_scan import associative_scan as associative_scan
from xlamini.transforms.cond.api import cond as cond, switch as switch
from xlamini.transforms.cond.primitive import cond_p as cond_p
from xlamini.transforms.control_flow.fori_loop import fori_loop as fori_loop
from xlamini.transforms.control_flow.map import map as map
from xlamini.transforms.cond.platform_dependent import platform_dependent as platform_dependent
from xlamini.transforms.scan.api import scan as scan, scan_p as scan_p
from xlamini.transforms.while_loop.api import while_loop as while_loop
from xlamini.transforms.while_loop.primitive import while_p as while_p
from xlamini.transforms.solvers.custom_linear_solve import (
    custom_linear_solve as custom_linear_solve, linear_solve_p as linear_solve_p,
)
from xlamini.transforms.solvers.custom_root import custom_root as custom_root
from xlamini.transforms.named_composite import composite as composite
from xlamini.transforms.reductions.reduce import reduce as reduce, reduce_p as reduce_p
from xlamini.transforms.reductions.reduce_window import (
    reduce_window as reduce_window, reduce_window_p as reduce_window_p,
)
from xlamini.transforms.reductions.select_and_scatter import select_and_scatter_p as select_and_scatter_p
from xlamini.transforms.sharding.constraint import with_sharding_constraint as with_sharding_constraint
