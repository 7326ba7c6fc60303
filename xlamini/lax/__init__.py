"""The operations that programs are made of, under the names JAX users know as `jax.lax`."""

from xlamini.core.api_boundary import edge_of_face as _edge_of_face
from xlamini.core.lazy import lazy_parts as _lazy_parts
from xlamini.lax.filling import empty, full, full_like
from xlamini.lax.indexing import index_take
from xlamini.lax.primitives import *  # noqa: F403
from xlamini.lax.products import mul, scaled_dot
from xlamini.lax.ragged_exchange import ragged_all_to_all
from xlamini.lax.ragged_products import RaggedDotDimensionNumbers, ragged_dot, ragged_dot_general
from xlamini.lax.shapes import broadcast_like, broadcast_shapes, broadcast_to_rank, collapse, dtype, shape_as_value
from xlamini.primitives.accuracy import AccuracyMode, Tolerance
from xlamini.primitives.approx_top_k import approx_max_k, approx_min_k, approx_top_k_p
from xlamini.primitives.arg_extrema import argmax, argmax_p, argmin, argmin_p
from xlamini.primitives.arithmetic import abs, add, div, max, min, mulhi, neg, rem, sign, sub
from xlamini.primitives.bitwise import (
    bitwise_and,
    bitwise_not,
    bitwise_or,
    bitwise_xor,
    clz,
    population_count,
    shift_left,
    shift_right_arithmetic,
    shift_right_logical,
)
from xlamini.primitives.collectives.axes import axis_index, axis_index_p, axis_size
from xlamini.primitives.collectives.exchange import all_to_all, all_to_all_p, pswapaxes
from xlamini.primitives.collectives.gathering import all_gather, all_gather_p, psum_scatter, reduce_scatter_p
from xlamini.primitives.collectives.permute import pbroadcast, ppermute, ppermute_p, pshuffle
from xlamini.primitives.collectives.reductions import pmax, pmax_p, pmean, pmin, pmin_p, psum, psum_p
from xlamini.primitives.collectives.sending import pcast, precv, psend
from xlamini.primitives.comparison import eq, ge, gt, le, lt, ne
from xlamini.primitives.complex import complex, conj, conj_p, imag, real
from xlamini.primitives.concatenate import concatenate, concatenate_p, split, split_p
from xlamini.primitives.convert import (
    bitcast_convert_type,
    bitcast_convert_type_p,
    convert_element_type,
    convert_element_type_p,
    reduce_precision,
    reduce_precision_p,
)
from xlamini.primitives.cumulative import (
    cumlogsumexp,
    cumlogsumexp_p,
    cummax,
    cummax_p,
    cummin,
    cummin_p,
    cumprod,
    cumprod_p,
    cumsum,
    cumsum_p,
)
from xlamini.primitives.dce_sink import dce_sink, dce_sink_p
from xlamini.primitives.dot_algorithm import DotAlgorithm, DotAlgorithmPreset
from xlamini.primitives.dot_general import DotDimensionNumbers, batch_matmul, dot, dot_general, dot_general_p
from xlamini.primitives.dynamic_slice import dynamic_index_in_dim, dynamic_slice, dynamic_slice_in_dim, dynamic_slice_p
from xlamini.primitives.dynamic_update_slice import (
    dynamic_update_index_in_dim,
    dynamic_update_slice,
    dynamic_update_slice_in_dim,
    dynamic_update_slice_p,
)
from xlamini.primitives.exponential import exp, exp2, expm1, log, log1p, logistic
from xlamini.primitives.fft import FftType, fft, fft_p
from xlamini.primitives.gather import GatherDimensionNumbers, GatherScatterMode, gather, gather_p
from xlamini.primitives.hyperbolic import acosh, asinh, atanh, cosh, sinh, tanh
from xlamini.primitives.identity import stage, stage_p, stop_gradient, stop_gradient_p
from xlamini.primitives.iota import broadcasted_iota, iota, iota_p
from xlamini.primitives.optimization_barrier import optimization_barrier, optimization_barrier_p
from xlamini.primitives.pad import pad, pad_p
from xlamini.primitives.power import cbrt, integer_pow, integer_pow_p, pow, reciprocal, rsqrt, sqrt, square
from xlamini.primitives.precision import Precision, PrecisionLike
from xlamini.primitives.reductions import (
    reduce_and,
    reduce_and_p,
    reduce_max,
    reduce_max_p,
    reduce_min,
    reduce_min_p,
    reduce_or,
    reduce_or_p,
    reduce_prod,
    reduce_prod_p,
    reduce_sum,
    reduce_sum_p,
    reduce_xor,
    reduce_xor_p,
)
from xlamini.primitives.rng_bit_generator import RandomAlgorithm, rng_bit_generator, rng_bit_generator_p
from xlamini.primitives.rng_uniform import rng_uniform, rng_uniform_p
from xlamini.primitives.rounding import RoundingMethod, ceil, floor, is_finite, nextafter, round, round_p
from xlamini.primitives.scatter import (
    ScatterDimensionNumbers,
    scatter,
    scatter_add,
    scatter_add_p,
    scatter_apply,
    scatter_max,
    scatter_max_p,
    scatter_min,
    scatter_min_p,
    scatter_mul,
    scatter_mul_p,
    scatter_p,
    scatter_sub,
    scatter_sub_p,
)
from xlamini.primitives.select import clamp, clamp_p, select, select_n, select_n_p
from xlamini.primitives.shape import (
    broadcast,
    broadcast_in_dim,
    broadcast_in_dim_p,
    expand_dims,
    reshape,
    reshape_p,
    rev,
    rev_p,
    squeeze,
    squeeze_p,
    transpose,
    transpose_p,
)
from xlamini.primitives.sharding_constraint import sharding_constraint_p
from xlamini.primitives.slice import index_in_dim, slice, slice_in_dim, slice_p
from xlamini.primitives.sort import sort, sort_key_val, sort_p
from xlamini.primitives.special.bessel import bessel_i0e, bessel_i1e
from xlamini.primitives.special.bessel import bessel_i0e as bessel_i0e_p
from xlamini.primitives.special.bessel import bessel_i1e as bessel_i1e_p
from xlamini.primitives.special.error_function import erf, erf_inv, erfc
from xlamini.primitives.special.error_function import erf as erf_p
from xlamini.primitives.special.error_function import erf_inv as erf_inv_p
from xlamini.primitives.special.error_function import erfc as erfc_p
from xlamini.primitives.special.gamma import digamma, lgamma, polygamma, zeta
from xlamini.primitives.special.gamma import digamma as digamma_p
from xlamini.primitives.special.gamma import lgamma as lgamma_p
from xlamini.primitives.special.gamma import polygamma as polygamma_p
from xlamini.primitives.special.gamma import zeta as zeta_p
from xlamini.primitives.special.incomplete_beta import betainc
from xlamini.primitives.special.incomplete_beta import regularized_incomplete_beta as regularized_incomplete_beta_p
from xlamini.primitives.special.incomplete_gamma import igamma, igammac
from xlamini.primitives.special.incomplete_gamma import igamma as igamma_p
from xlamini.primitives.special.incomplete_gamma import igammac as igammac_p
from xlamini.primitives.special.incomplete_gamma_derivative import igamma_grad_a, random_gamma_grad
from xlamini.primitives.special.incomplete_gamma_derivative import igamma_grad_a as igamma_grad_a_p
from xlamini.primitives.stack import stack, stack_p, unstack, unstack_p
from xlamini.primitives.tile import tile, tile_p
from xlamini.primitives.tokens import after_all, after_all_p, create_token, create_token_p
from xlamini.primitives.top_k import top_k, top_k_p
from xlamini.primitives.trigonometric import acos, asin, atan, atan2, cos, sin, tan
from xlamini.primitives.windows.conv_forms import (
    conv,
    conv_general_dilated_local,
    conv_general_dilated_patches,
    conv_transpose,
    conv_with_general_padding,
)
from xlamini.primitives.windows.conv_numbers import (
    ConvDimensionNumbers,
    ConvGeneralDilatedDimensionNumbers,
    conv_dimension_numbers,
    conv_general_permutations,
    conv_general_shape_tuple,
    conv_shape_tuple,
    conv_transpose_shape_tuple,
)
from xlamini.primitives.windows.convolution import conv_general_dilated, conv_general_dilated_p
from xlamini.primitives.windows.geometry import padtype_to_pads
from xlamini.primitives.windows.reduce_window import (
    reduce_window_max_p,
    reduce_window_min_p,
    reduce_window_shape_tuple,
    reduce_window_sum_p,
)
from xlamini.primitives.windows.select import select_and_gather_add_p, select_and_scatter_add_p
from xlamini.transforms.cond.api import cond, switch
from xlamini.transforms.cond.platform_dependent import platform_dependent
from xlamini.transforms.cond.primitive import cond_p
from xlamini.transforms.control_flow.associative_scan import associative_scan
from xlamini.transforms.control_flow.fori_loop import fori_loop
from xlamini.transforms.control_flow.map import map
from xlamini.transforms.custom.custom_linear_solve import custom_linear_solve, linear_solve_p
from xlamini.transforms.custom.custom_root import custom_root
from xlamini.transforms.named_composite import composite
from xlamini.transforms.reductions.reduce import reduce, reduce_p
from xlamini.transforms.reductions.reduce_window import reduce_window, reduce_window_p
from xlamini.transforms.reductions.select_and_scatter import select_and_scatter_p
from xlamini.transforms.scan.api import scan, scan_p
from xlamini.transforms.sharding.constraint import with_sharding_constraint
from xlamini.transforms.while_loop.api import while_loop
from xlamini.transforms.while_loop.primitive import while_p

_edge_of_face(globals())
__getattr__, __dir__ = _lazy_parts(globals(), ("linalg",))
