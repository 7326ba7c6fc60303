"""The repr of an Array: `Array([1., 2.], dtype=float32)`, as JAX prints it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xlamini.core import ShapedArray
from xlamini.runtime.arrays.conversions import Mixin
from xlamini.runtime.arrays.lifetime import describe
from xlamini.runtime.arrays.to_host import to_numpy

_PREFIX = "Array("


class ArrayText(Mixin):
    """Mixin with the text methods of Array."""

    aval: ShapedArray
    is_deleted: Callable[[], bool]

    def __repr__(self) -> str:
        if self.is_deleted():
            return f"<deleted Array {describe(self)}>"
        weak = ", weak_type=True" if self.aval.weak_type else ""
        kind = f"dtype={self.aval.dtype.name}{weak})"
        if not _is_readable(self):
            return f"{_PREFIX}shape={self.aval.shape}, {kind}"
        body = _elements(self)
        width = np.get_printoptions()["linewidth"]
        last_line = len(body) - body.rfind("\n") + 1
        # JAX pads where NumPy would break the line; doctests of JAX programs expect the padding.
        gap = 1 if last_line + len(kind) + 1 <= width else len(_PREFIX)
        return f"{_PREFIX}{body},{' ' * gap}{kind}"

    def __str__(self) -> str:
        return str(to_numpy(self)) if _is_readable(self) and not self.is_deleted() else repr(self)

    def __format__(self, format_spec: str) -> str:
        if not _is_readable(self):
            return format(repr(self), format_spec)
        value = to_numpy(self)
        return format(value if value.shape else value[()], format_spec)


def _is_readable(x: Any) -> bool:
    """Whether this process can read all elements: no shard, and no term of them, is elsewhere."""
    split = x.aval.explicit_sharding
    if split is not None and split.unreduced:
        return False
    return x.is_fully_addressable or x.is_fully_replicated


def _elements(x: Any) -> str:
    if not x.aval.size:
        return f"[], shape={x.aval.shape}"
    return np.array2string(to_numpy(x), prefix=_PREFIX, suffix=",", separator=", ")
