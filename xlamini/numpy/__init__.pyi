# The public names, for type checkers and for Python, which reads this file at import (core/stubs.py).
from xlamini.numpy import fft as fft, linalg as linalg
from xlamini.numpy.aliases import (
    __array_api_version__ as __array_api_version__, __array_namespace_info__ as __array_namespace_info__, bool as bool,
    ndarray as ndarray,
)
from xlamini.numpy.along_axes import apply_along_axis as apply_along_axis, apply_over_axes as apply_over_axes
from xlamini.numpy.arithmetic import (
    abs as abs, absolute as absolute, clip as clip, divide as divide, divmod as divmod, fabs as fabs,
    float_power as float_power, floor_divide as floor_divide, fmax as fmax, fmin as fmin, fmod as fmod,
    heaviside as heaviside, mod as mod, positive as positive, pow as pow, power as power, reciprocal as reciprocal,
    remainder as remainder, sign as sign, square as square, true_divide as true_divide,
)
from xlamini.numpy.bessel import i0 as i0
from xlamini.numpy.bitwise import (
    bitwise_count as bitwise_count, bitwise_invert as bitwise_invert, bitwise_left_shift as bitwise_left_shift,
    bitwise_not as bitwise_not, bitwise_right_shift as bitwise_right_shift, invert as invert, left_shift as left_shift,
    right_shift as right_shift,
)
from xlamini.numpy.calculus import gradient as gradient, unwrap as unwrap
from xlamini.numpy.comparison import (
    allclose as allclose, array_equal as array_equal, array_equiv as array_equiv, equal as equal, greater as greater,
    greater_equal as greater_equal, isclose as isclose, iscomplex as iscomplex, isfinite as isfinite, isinf as isinf,
    isnan as isnan, isneginf as isneginf, isposinf as isposinf, isreal as isreal, less as less,
    less_equal as less_equal, logical_not as logical_not, not_equal as not_equal, signbit as signbit,
)
from xlamini.numpy.complex_parts import angle as angle, conj as conj, conjugate as conjugate, imag as imag, real as real
from xlamini.numpy.constants import (
    ComplexWarning as ComplexWarning, e as e, euler_gamma as euler_gamma, inf as inf, nan as nan, newaxis as newaxis,
    pi as pi,
)
from xlamini.numpy.construction import (
    array as array, asarray as asarray, astype as astype, copy as copy, frombuffer as frombuffer, fromiter as fromiter,
    fromstring as fromstring,
)
from xlamini.numpy.convolution import convolve as convolve, correlate as correlate
from xlamini.numpy.correlation import corrcoef as corrcoef, cov as cov
from xlamini.numpy.creation import (
    empty as empty, empty_like as empty_like, full as full, full_like as full_like, ones as ones,
    ones_like as ones_like, zeros as zeros, zeros_like as zeros_like,
)
from xlamini.numpy.cross import cross as cross
from xlamini.numpy.cumulative import (
    cumprod as cumprod, cumsum as cumsum, cumulative_prod as cumulative_prod, cumulative_sum as cumulative_sum,
    nancumprod as nancumprod, nancumsum as nancumsum,
)
from xlamini.numpy.curves import diff as diff, ediff1d as ediff1d, interp as interp, trapezoid as trapezoid
from xlamini.numpy.dtypes import (
    bfloat16 as bfloat16, bool_ as bool_, can_cast as can_cast, cdouble as cdouble, character as character,
    complex128 as complex128, complex64 as complex64, complex_ as complex_, complexfloating as complexfloating,
    csingle as csingle, double as double, dtype as dtype, finfo as finfo, flexible as flexible, float16 as float16,
    float32 as float32, float4_e2m1fn as float4_e2m1fn, float64 as float64, float6_e2m3fn as float6_e2m3fn,
    float6_e3m2fn as float6_e3m2fn, float8_e3m4 as float8_e3m4, float8_e4m3 as float8_e4m3,
    float8_e4m3b11fnuz as float8_e4m3b11fnuz, float8_e4m3fn as float8_e4m3fn, float8_e4m3fnuz as float8_e4m3fnuz,
    float8_e5m2 as float8_e5m2, float8_e5m2fnuz as float8_e5m2fnuz, float8_e8m0fnu as float8_e8m0fnu, float_ as float_,
    floating as floating, generic as generic, iinfo as iinfo, inexact as inexact, int1 as int1, int16 as int16,
    int2 as int2, int32 as int32, int4 as int4, int64 as int64, int8 as int8, int_ as int_, integer as integer,
    iscomplexobj as iscomplexobj, isdtype as isdtype, isrealobj as isrealobj, issubdtype as issubdtype,
    number as number, object_ as object_, promote_types as promote_types, result_type as result_type,
    signedinteger as signedinteger, single as single, uint as uint, uint1 as uint1, uint16 as uint16, uint2 as uint2,
    uint32 as uint32, uint4 as uint4, uint64 as uint64, uint8 as uint8, unsignedinteger as unsignedinteger,
)
from xlamini.numpy.editing import delete as delete, fill_diagonal as fill_diagonal, insert as insert, place as place
from xlamini.numpy.einsum import einsum as einsum, einsum_path as einsum_path
from xlamini.numpy.exponential import (
    cbrt as cbrt, exp as exp, exp2 as exp2, expm1 as expm1, log as log, log10 as log10, log1p as log1p, log2 as log2,
    sqrt as sqrt,
)
from xlamini.numpy.files import (
    from_dlpack as from_dlpack, fromfile as fromfile, load as load, save as save, savez as savez,
)
from xlamini.numpy.flipping import flip as flip, fliplr as fliplr, flipud as flipud, roll as roll, rot90 as rot90
from xlamini.numpy.histograms import (
    histogram as histogram, histogram2d as histogram2d, histogram_bin_edges as histogram_bin_edges,
    histogramdd as histogramdd,
)
from xlamini.numpy.indexing.conversions import (
    diag_indices_from as diag_indices_from, mask_indices as mask_indices, ravel_multi_index as ravel_multi_index,
    unravel_index as unravel_index,
)
from xlamini.numpy.indexing.tricks import (
    c_ as c_, index_exp as index_exp, ix_ as ix_, mgrid as mgrid, ogrid as ogrid, r_ as r_, s_ as s_,
)
from xlamini.numpy.integers import gcd as gcd, lcm as lcm
from xlamini.numpy.joining import (
    append as append, block as block, column_stack as column_stack, concat as concat, concatenate as concatenate,
    dstack as dstack, hstack as hstack, stack as stack, vstack as vstack,
)
from xlamini.numpy.linear_algebra import (
    dot as dot, inner as inner, kron as kron, matmul as matmul, matvec as matvec, outer as outer,
    tensordot as tensordot, vdot as vdot, vecdot as vecdot, vecmat as vecmat,
)
from xlamini.numpy.masks import (
    choose as choose, compress as compress, extract as extract, resize as resize, trim_zeros as trim_zeros,
)
from xlamini.numpy.matrices import (
    diag as diag, diag_indices as diag_indices, diagflat as diagflat, diagonal as diagonal, eye as eye,
    identity as identity, trace as trace, tri as tri, tril as tril, tril_indices as tril_indices,
    tril_indices_from as tril_indices_from, triu as triu, triu_indices as triu_indices,
    triu_indices_from as triu_indices_from,
)
from xlamini.numpy.medians import median as median
from xlamini.numpy.nan_reductions import (
    nanargmax as nanargmax, nanargmin as nanargmin, nanmax as nanmax, nanmean as nanmean, nanmedian as nanmedian,
    nanmin as nanmin, nanprod as nanprod, nanstd as nanstd, nansum as nansum, nanvar as nanvar,
)
from xlamini.numpy.packing import packbits as packbits, unpackbits as unpackbits
from xlamini.numpy.padding import pad as pad
from xlamini.numpy.polynomials import (
    poly as poly, polyadd as polyadd, polyder as polyder, polydiv as polydiv, polyfit as polyfit, polyint as polyint,
    polymul as polymul, polysub as polysub, polyval as polyval, roots as roots, vander as vander,
)
from xlamini.numpy.printing import (
    array_repr as array_repr, array_str as array_str, get_printoptions as get_printoptions,
    printoptions as printoptions, set_printoptions as set_printoptions,
)
from xlamini.numpy.quantiles import (
    nanpercentile as nanpercentile, nanquantile as nanquantile, percentile as percentile, quantile as quantile,
)
from xlamini.numpy.ranges import (
    arange as arange, fromfunction as fromfunction, geomspace as geomspace, indices as indices, linspace as linspace,
    logspace as logspace, meshgrid as meshgrid,
)
from xlamini.numpy.reductions import (
    all as all, amax as amax, amin as amin, any as any, count_nonzero as count_nonzero, max as max, min as min,
    minmax as minmax, prod as prod, ptp as ptp, sum as sum,
)
from xlamini.numpy.repeating import (
    broadcast_arrays as broadcast_arrays, broadcast_shapes as broadcast_shapes, broadcast_to as broadcast_to,
    repeat as repeat, tile as tile,
)
from xlamini.numpy.rounding import (
    around as around, ceil as ceil, copysign as copysign, fix as fix, floor as floor, frexp as frexp, ldexp as ldexp,
    modf as modf, nextafter as nextafter, rint as rint, round as round, spacing as spacing, trunc as trunc,
)
from xlamini.numpy.searching import (
    argwhere as argwhere, bincount as bincount, digitize as digitize, flatnonzero as flatnonzero, nonzero as nonzero,
    searchsorted as searchsorted,
)
from xlamini.numpy.selection import nan_to_num as nan_to_num, piecewise as piecewise, select as select, where as where
from xlamini.numpy.sets import (
    intersect1d as intersect1d, isin as isin, setdiff1d as setdiff1d, setxor1d as setxor1d, union1d as union1d,
    unique as unique, unique_all as unique_all, unique_counts as unique_counts, unique_inverse as unique_inverse,
    unique_values as unique_values,
)
from xlamini.numpy.shapes import (
    atleast_1d as atleast_1d, atleast_2d as atleast_2d, atleast_3d as atleast_3d, expand_dims as expand_dims,
    isscalar as isscalar, iterable as iterable, matrix_transpose as matrix_transpose, moveaxis as moveaxis,
    ndim as ndim, permute_dims as permute_dims, ravel as ravel, reshape as reshape, rollaxis as rollaxis,
    shape as shape, size as size, squeeze as squeeze, swapaxes as swapaxes, transpose as transpose,
)
from xlamini.numpy.sorting import (
    argmax as argmax, argmin as argmin, argpartition as argpartition, argsort as argsort, lexsort as lexsort,
    partition as partition, sort as sort, sort_complex as sort_complex, top_k as top_k,
)
from xlamini.numpy.splitting import (
    array_split as array_split, dsplit as dsplit, hsplit as hsplit, split as split, unstack as unstack,
    vsplit as vsplit,
)
from xlamini.numpy.statistics import average as average, mean as mean, std as std, var as var
from xlamini.numpy.indexing.take import (
    put as put, put_along_axis as put_along_axis, take as take, take_along_axis as take_along_axis,
)
from xlamini.numpy.trigonometric import (
    acos as acos, acosh as acosh, arccos as arccos, arccosh as arccosh, arcsin as arcsin, arcsinh as arcsinh,
    arctan as arctan, arctan2 as arctan2, arctanh as arctanh, asin as asin, asinh as asinh, atan as atan,
    atan2 as atan2, atanh as atanh, cos as cos, cosh as cosh, deg2rad as deg2rad, degrees as degrees, hypot as hypot,
    rad2deg as rad2deg, radians as radians, sin as sin, sinc as sinc, sinh as sinh, tan as tan, tanh as tanh,
)
from xlamini.numpy.ufuncs.ufunc_class import frompyfunc as frompyfunc, ufunc as ufunc
from xlamini.numpy.ufuncs.table import (
    add as add, bitwise_and as bitwise_and, bitwise_or as bitwise_or, bitwise_xor as bitwise_xor,
    logaddexp as logaddexp, logaddexp2 as logaddexp2, logical_and as logical_and, logical_or as logical_or,
    logical_xor as logical_xor, maximum as maximum, minimum as minimum, multiply as multiply, negative as negative,
    subtract as subtract,
)
from xlamini.numpy.vectorize import vectorize as vectorize
from xlamini.numpy.windows import (
    bartlett as bartlett, blackman as blackman, hamming as hamming, hanning as hanning, kaiser as kaiser,
)
