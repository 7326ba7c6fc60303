"""Literals: equal numbers share one `Literal`, so that memos may be keyed by it."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xlamini.core import hooks
from xlamini.core.caching.memo import Memo
from xlamini.core.dtypes import check_fits
from xlamini.core.flags.config import enable_x64
from xlamini.core.program.avals import SCALAR_TYPES, ShapedArray, aval_of
from xlamini.core.program.jaxpr import Literal
from xlamini.core.sizes.expression import SymbolicSize

_literals = Memo("helper: literals", 10_000, counted=False)


def literal(x: Any, dtype: Any = None, weak_type: bool = False) -> Any:
    """A literal for a Python scalar (weakly typed) or a NumPy scalar; with `dtype`, of that dtype."""
    scalar = type(x) in SCALAR_TYPES or isinstance(x, np.number | np.bool_)
    return interned(_new, x, dtype, weak_type) if scalar else _new(x, dtype, weak_type)


def interned(make: Callable[..., Literal], x: Any, *how: Any) -> Literal:
    """`make(x, *how)` of a Python or NumPy scalar; made once for all that are alike."""
    key = (make, type(x), x or repr(x), enable_x64.value, *how)  # 0.0 equals -0.0
    found = _literals.table.get(key)
    if found is None:
        found = make(x, *how)
        if x == x and not isinstance(x, complex | np.complexfloating):  # not nan; and parts may be -0.0
            _literals.keep(key, found)
    return found


def _new(x: Any, dtype: Any, weak_type: bool) -> Literal:
    if type(x) is SymbolicSize:
        return hooks.size_value(x, dtype, weak_type)
    if dtype is not None:
        return Literal(np.asarray(x, dtype)[()], ShapedArray((), dtype, weak_type))
    aval, kind = aval_of(x), type(x)
    if kind is int and not -(2**31) <= x < 2**31:
        check_fits(x, aval.dtype)
    return Literal(x if kind in SCALAR_TYPES else x.astype(aval.dtype), aval)
