"""Private: the first-order vocabulary. One operation or one family a file, with all its rules."""

from xlamini.primitives.arithmetic import abs, add, max, min, sign, sub
from xlamini.primitives.batch_ops import move_batch_dim, with_batch_first
from xlamini.primitives.bitwise import bitwise_and, bitwise_or
from xlamini.primitives.comparison import eq, ge, gt, le, lt, ne
from xlamini.primitives.complex import conj, imag, real
from xlamini.primitives.convert_element_type import (
    bitcast_convert_type,
    cast,
    cast_on_host,
    convert,
    number_on_host,
    warn_of_imaginary_part,
)
from xlamini.primitives.device_put import in_space, placed_as
from xlamini.primitives.dot_general import dot_general_p
from xlamini.primitives.elementwise import mul
from xlamini.primitives.exponential import exp, log, log1p
from xlamini.primitives.identity import stop_gradient
from xlamini.primitives.iota import broadcasted_iota
from xlamini.primitives.kinds import BOOL, COMPLEX, FLOAT, INTEGER, is_complex, kind_of
from xlamini.primitives.operators import equal
from xlamini.primitives.ordering import highest, lowest
from xlamini.primitives.out_sharding import checked_sharding, in_sharding, summed_in_sharding
from xlamini.primitives.power import sqrt
from xlamini.primitives.promotion import (
    broadcast_to,
    broadcasted,
    broadcasted_freely,
    check_operands,
    in_dtype,
    is_operand,
    promoted,
    promoted_dtypes,
    promoted_inexact,
    promoted_inexact_dtypes,
    stands_for_array,
)
from xlamini.primitives.random_keys import split_p, wrap_p
from xlamini.primitives.reductions import reduce_or, reduce_or_p
from xlamini.primitives.reshard import divided_as
from xlamini.primitives.rounding import floor
from xlamini.primitives.select import clamp, where
from xlamini.primitives.shape import broadcast_in_dim, expand_dims, moveaxis, reshape, rev, squeeze, sum_over, transpose
from xlamini.primitives.slice import index_in_dim, slice_in_dim
from xlamini.primitives.tangent_ops import full, instantiated, zeros
