"""Rejection sampling: each element is drawn until one draw is accepted; the samplers of counts share it."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from xlamini.core import Shape, finfo, iinfo
from xlamini.primitives import convert, lt, split_p, where
from xlamini.random.arguments import any_of, broadcast_scalar_to
from xlamini.random.uniform import thirds, uniform_between
from xlamini.transforms.while_loop.api import while_loop


def until_accepted(
    propose: Callable[[Any, Any], tuple[Any, Any]],
    key: Any,
    shape: Shape,
    dtype: np.dtype,
    needed: Any,
    counted: np.dtype,
) -> Any:
    """Proposals, of `shape` and `dtype`, each drawn anew until it is accepted.

    `propose(u, v)` takes numbers between -0.5 and 0.5 and between 0 and 1, and gives proposals and whether they are
    accepted. Nothing is drawn unless `needed`; there are at most as many iterations as `counted` has numbers.
    """

    def turn(state: Any) -> Any:
        turns, kept, accepted, key = state
        key, for_u, for_v = thirds(split_p.bind(key, shape=(3,)))
        u = uniform_between(for_u, shape, dtype, 0.0, 1.0) - 0.5
        v = uniform_between(for_v, shape, dtype, 0.0, 1.0)
        proposed, accept = propose(u, v)
        return turns + 1, where(accept, proposed, kept), accepted | accept, key

    start = (np.int32(0), broadcast_scalar_to(dtype.type(-1), shape), broadcast_scalar_to(np.False_, shape), key)
    return while_loop(lambda state: needed & any_of(~state[2]) & goes_on(state[0], counted), turn, start)[1]


def goes_on(turns: Any, dtype: np.dtype) -> Any:
    """The loop condition: at most as many iterations as the greatest number of a dtype."""
    greatest = iinfo(dtype).max if dtype.kind in "iu" else finfo(dtype).max
    return lt(convert(turns, dtype), dtype.type(greatest))
