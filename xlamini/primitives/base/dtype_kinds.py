"""Kinds of dtypes: what an operation accepts, whatever the number of bits."""

from __future__ import annotations

from enum import Flag, auto
from typing import Any

import numpy as np

from xlamini.core import aval_of, issubdtype, memoised


class Kinds(Flag):
    """Kinds of dtypes that an operation accepts."""

    BOOL = auto()
    SIGNED = auto()
    UNSIGNED = auto()
    FLOAT = auto()
    COMPLEX = auto()
    EXTENDED = auto()


BOOL, SIGNED, UNSIGNED, FLOAT, COMPLEX, EXTENDED = Kinds
INTEGER = SIGNED | UNSIGNED
REAL = INTEGER | FLOAT
NUMERIC = REAL | COMPLEX
ANY = NUMERIC | BOOL

_KIND_OF = {
    BOOL: np.bool_,
    SIGNED: np.signedinteger,
    UNSIGNED: np.unsignedinteger,
    FLOAT: np.floating,
    COMPLEX: np.complexfloating,
}


@memoised("helper: kinds of dtypes", None)
def kind_of(dtype: Any) -> Kinds:
    """The kind of a dtype; EXTENDED for those that hold no numbers, such as random keys."""
    return next((k for k, t in _KIND_OF.items() if issubdtype(dtype, t)), EXTENDED)


def is_complex(x: Any) -> bool:
    """Whether a value is complex."""
    return kind_of(aval_of(x).dtype) is COMPLEX
