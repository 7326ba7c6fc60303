"""rng_uniform: random numbers from the device's own generator, which no program can set."""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from xlamini.core import Primitive, Shape, ShapedArray, ShapeError
from xlamini.core.sizes.expression import as_size
from xlamini.primitives.base.dtype_kinds import REAL, kind_of
from xlamini.runtime import Array

_INT64 = np.dtype(np.int64)


def rng_uniform(a: Any, b: Any, shape: Sequence[int]) -> Array:
    """Numbers of `shape`, uniform between the scalars `a` (included) and `b` (not), of their dtype.

    They cannot be repeated: `random.uniform`, which takes a key, is what programs want. ShapeError for bounds that are
    no scalars, TypeError where their dtypes differ.

    >>> rng_uniform(0.0, 1.0, (3,)).shape
    (3,)
    """
    return rng_uniform_p.bind(a, b, shape=tuple(map(as_size, shape)))


class RngUniform(Primitive):
    name = "rng_uniform"
    lacks: Mapping[str, str] = {
        "jvp": "its numbers cannot be drawn twice",
        "batch": "whether it draws anew for each element is not for vmap to say",
    }

    def shape_rule(self, a: ShapedArray, b: ShapedArray, *, shape: Shape) -> ShapedArray:
        found = f"{a.str_short(short_dtypes=False)} and {b.str_short(short_dtypes=False)}"
        if a.shape or b.shape:
            raise ShapeError(f"rng_uniform: a and b must be scalars, got {found}; scale the result instead")
        if a.dtype != b.dtype or kind_of(a.dtype) not in REAL:
            raise TypeError(f"rng_uniform: a and b must have one real dtype, got {found}; convert them with .astype")
        return a.update(shape=shape, weak_type=a.weak_type and b.weak_type)

    def lower(self, ctx: Any, a: Any, b: Any, *, shape: Shape) -> Any:
        sizes = ctx.constant(np.array(shape, _INT64), ShapedArray((len(shape),), _INT64))
        return ctx.op("stablehlo.rng", a, b, sizes, rng_distribution="#stablehlo<rng_distribution UNIFORM>")


rng_uniform_p: Final = RngUniform()
