"""Keys that tell apart what Python calls equal: 0.0 and -0.0; and that know nan again, which equals nothing.

Inside containers, 1, True and 1.0 are told apart too: at the top, the type is part of a key wherever one is made.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Hashable
from typing import Any

import numpy as np

_INEXACT = float | complex | np.inexact
_PLAIN = frozenset({int, bool, str, type(None)})


def is_ambiguous(x: Any) -> bool:
    """Whether a value has a number in it that equals one of another meaning, 0.0 or -0.0, or not even itself, nan."""
    kind = type(x)
    if kind in _PLAIN:
        return False
    if isinstance(x, _INEXACT):
        return bool(x != x or x == 0 or (isinstance(x, complex | np.complexfloating) and 0 in (x.real, x.imag)))
    for part in x if kind is tuple else _parts(x):
        if type(part) not in _PLAIN and is_ambiguous(part):
            return True
    return False


def exact_key(x: Any) -> Hashable:
    """A key of a value, equal for values of one meaning alone; the value itself where nothing in it is ambiguous."""
    if not is_ambiguous(x):
        return x
    if isinstance(x, _INEXACT):
        return type(x), repr(x)
    kind = frozenset if isinstance(x, frozenset) else tuple
    return type(x), kind((type(part), exact_key(part)) for part in _parts(x))


def _parts(x: Any) -> Any:
    if isinstance(x, tuple | list | frozenset):
        return x
    made = getattr(type(x), "__dataclass_params__", None)
    if made is None or not (made.frozen and made.eq):
        return ()
    return [getattr(x, field.name, None) for field in dataclasses.fields(x) if field.compare]
