"""Private: the first-order vocabulary. One operation or one family a file, with all its rules."""

from xlamini.primitives.base.batch_ops import move_batch_dim, with_batch_first
from xlamini.primitives.base.dtype_kinds import BOOL, COMPLEX, FLOAT, INTEGER, is_complex, kind_of
from xlamini.primitives.base.elementwise import mul
from xlamini.primitives.base.operators import equal
from xlamini.primitives.base.out_sharding import checked_sharding, in_sharding, summed_in_sharding
from xlamini.primitives.base.promotion import (
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
from xlamini.primitives.base.tangent_ops import full, instantiated, zeros
from xlamini.primitives.elementwise.arithmetic import abs, add, max, min, sign, sub
from xlamini.primitives.elementwise.bitwise import bitwise_and, bitwise_or
from xlamini.primitives.elementwise.comparison import eq, ge, gt, le, lt, ne
from xlamini.primitives.elementwise.complex import conj, imag, real
from xlamini.primitives.elementwise.convert_element_type import (
    bitcast_convert_type,
    cast,
    cast_on_host,
    convert,
    number_on_host,
    warn_of_imaginary_part,
)
from xlamini.primitives.elementwise.exponential import exp, log, log1p
from xlamini.primitives.elementwise.power import sqrt
from xlamini.primitives.elementwise.rounding import floor
from xlamini.primitives.elementwise.select import clamp, where
from xlamini.primitives.placement.device_put import in_space, placed_as
from xlamini.primitives.placement.identity import stop_gradient
from xlamini.primitives.placement.reshard import reshard_as
from xlamini.primitives.products.dot_general import dot_general_p
from xlamini.primitives.random.random_keys import split_p, wrap_p
from xlamini.primitives.reductions.ordering import highest, lowest
from xlamini.primitives.reductions.reductions import reduce_or, reduce_or_p
from xlamini.primitives.shape.iota import broadcasted_iota
from xlamini.primitives.shape.shape import (
    broadcast_in_dim,
    expand_dims,
    moveaxis,
    reshape,
    rev,
    squeeze,
    sum_over,
    transpose,
)
from xlamini.primitives.shape.slice import index_in_dim, slice_in_dim
