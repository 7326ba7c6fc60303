"""Dtypes: which there are, what they hold, and what operands promote to."""

from xlamini.core.dtypes.limits import (
    can_cast,
    check_fits,
    finfo,
    fits,
    iinfo,
    itemsize_bits,
)
from xlamini.core.dtypes.promotion import (
    as_dtype,
    canonicalize_dtype,
    check_array_dtype,
    check_user_dtype,
    dtype_of,
    is_array_dtype,
    is_weak,
    issubdtype,
    promote_types,
    python_scalar_dtypes,
    result_type,
    scalar_type_of,
    short_name,
)
from xlamini.core.dtypes.table import (
    ExtendedDType,
    bool_,
    complexes,
    extended,
    float0,
    floats,
    ml_classes,
    prng_key,
    scalar_types,
    signed,
    small_floats,
    small_ints,
    unsigned,
)
