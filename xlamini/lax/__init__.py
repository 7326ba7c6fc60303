"""The operations that programs are made of, under the names JAX users know as `jax.lax`."""

from xlamini.core.edges import edge_of_face as _edge_of_face
from xlamini.primitives.arg_extrema import argmax, argmax_p, argmin, argmin_p
from xlamini.primitives.arithmetic import abs, add, div, max, min, mul, neg, rem, sign, sub
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
from xlamini.primitives.comparison import eq, ge, gt, le, lt, ne
from xlamini.primitives.complex import complex, conj, imag, real
from xlamini.primitives.concatenate import concatenate, concatenate_p, split, split_p
from xlamini.primitives.convert import bitcast_convert_type, convert_element_type, reduce_precision
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
from xlamini.primitives.dot_general import batch_matmul, dot, dot_general, dot_general_p
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
from xlamini.primitives.identity import stop_gradient
from xlamini.primitives.iota import broadcasted_iota, iota, iota_p
from xlamini.primitives.optimization_barrier import optimization_barrier, optimization_barrier_p
from xlamini.primitives.pad import pad, pad_p
from xlamini.primitives.power import cbrt, integer_pow, pow, reciprocal, rsqrt, sqrt, square
from xlamini.primitives.precision import DotAlgorithmPreset, Precision
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
from xlamini.primitives.rounding import RoundingMethod, ceil, floor, is_finite, nextafter, round
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
from xlamini.primitives.select import clamp, select, select_n
from xlamini.primitives.shape import broadcast, broadcast_in_dim, expand_dims, reshape, rev, squeeze, transpose
from xlamini.primitives.slice import index_in_dim, slice, slice_in_dim, slice_p
from xlamini.primitives.sort import sort, sort_key_val, sort_p
from xlamini.primitives.special.error_function import erf, erf_inv, erfc
from xlamini.primitives.special.gamma import digamma, lgamma, polygamma, zeta
from xlamini.primitives.special.incomplete_gamma import igamma, igammac
from xlamini.primitives.special.incomplete_gamma_derivative import igamma_grad_a, random_gamma_grad
from xlamini.primitives.top_k import top_k, top_k_p
from xlamini.primitives.trigonometric import acos, asin, atan, atan2, cos, sin, tan
from xlamini.transforms.control_flow.associative_scan import associative_scan
from xlamini.transforms.control_flow.cond import cond, switch
from xlamini.transforms.control_flow.cond_primitive import cond_p
from xlamini.transforms.control_flow.fori_loop import fori_loop
from xlamini.transforms.control_flow.map import map
from xlamini.transforms.control_flow.platform_dependent import platform_dependent
from xlamini.transforms.control_flow.scan import scan, scan_p
from xlamini.transforms.control_flow.while_loop import while_loop
from xlamini.transforms.control_flow.while_primitive import while_p
from xlamini.transforms.custom.custom_linear_solve import custom_linear_solve, linear_solve_p
from xlamini.transforms.custom.custom_root import custom_root

_edge_of_face(globals())
