"""Random numbers from a generator with a state, as in NumPy: a key, and a ref that counts how often it was used.

    rng = stateful_rng(42)
    rng.uniform(size=3)
    rng.normal()            # other numbers than a second uniform would be

Each draw uses a key of its own, so the numbers are those of `xlamini.random` for `rng.key()`. The counter is a ref, so
a generator that is passed to a jitted function, or closed over by it, goes on from call to call.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from xlamini import random
from xlamini.core import api_boundary_methods, aval_of
from xlamini.core.errors.api_boundary import edge_of_face as _edge_of_face
from xlamini.core.tracing.state import state
from xlamini.numpy.creation import zeros
from xlamini.numpy.refs import Ref, addupdate, new_ref
from xlamini.numpy.repeating import broadcast_shapes
from xlamini.runtime import Array
from xlamini.tree_util import register_dataclass
from xlamini.typing import ArrayLike, DTypeLike

__all__ = ["StatefulPRNG", "stateful_rng"]

Size = int | Sequence[int] | None


@register_dataclass
@dataclass(frozen=True, eq=False)
class StatefulPRNG:
    """A generator of random numbers with a state; made by `stateful_rng`. A pytree of its key and its counter.

    As it holds a ref, it may be an argument of transformed functions and be closed over, but not returned from them.
    `vmap` takes a generator from `split`; with another one, all examples get the same numbers. `size` is the shape of
    what is drawn; by default it is that of the other arguments together.

    >>> rng = stateful_rng(0)
    >>> rng.integers(10, size=5), rng.normal(size=(2, 3)).shape
    (Array([1, 1, 7, 7, 6], dtype=int32), (2, 3))
    """

    _base_key: Array
    _counter: Ref

    def key(self, shape: int | Sequence[int] = ()) -> Array:
        """A new key for the functions of `xlamini.random`, or an array of keys. Like all draws it changes the state.

        ValueError for a generator that was split, but not mapped over.
        """
        if self._base_key.ndim:
            raise ValueError(
                f"StatefulPRNG: the generator was split into {self._base_key.shape}; map over it with vmap, for example"
            )
        key = random.fold_in(self._base_key, self._counter[...])
        addupdate(self._counter, ..., 1)
        return key if shape == () else random.split(key, _shape(shape))

    def random(self, size: Size = None, dtype: DTypeLike = float) -> Array:
        """Floats in [0, 1)."""
        return random.uniform(self.key(), _shape(size), dtype)

    def uniform(
        self, low: ArrayLike = 0, high: ArrayLike = 1, size: Size = None, *, dtype: DTypeLike = float
    ) -> Array:
        """Floats in [low, high).

        >>> stateful_rng(42).uniform()
        Array(0.5302608, dtype=float32)
        """
        return random.uniform(self.key(), _shape(size, low, high), dtype, minval=low, maxval=high)

    def normal(
        self, loc: ArrayLike = 0, scale: ArrayLike = 1, size: Size = None, *, dtype: DTypeLike = float
    ) -> Array:
        """Numbers of the normal distribution with mean `loc` and standard deviation `scale`."""
        return random.normal(self.key(), _shape(size, loc, scale), dtype) * scale + loc

    def integers(
        self, low: ArrayLike, high: ArrayLike | None = None, size: Size = None, *, dtype: DTypeLike = int
    ) -> Array:
        """Integers from `low` to below `high`; with one argument, from 0 to below it."""
        if high is None:
            low, high = 0, low
        return random.randint(self.key(), _shape(size, low, high), low, high, dtype)

    def spawn(self, n_children: int) -> list[StatefulPRNG]:
        """A list of new generators."""
        return [StatefulPRNG(key, new_ref(0)) for key in self.key((n_children,))]

    def split(self, num: int | Sequence[int]) -> StatefulPRNG:
        """One generator that `vmap` maps over: a stack of `num` generators, or one of this shape.

        >>> import xlamini
        >>> xlamini.vmap(lambda rng: rng.uniform())(stateful_rng(3).split(2)).shape
        (2,)
        """
        keys = self.key(_shape(num))
        return StatefulPRNG(keys, new_ref(zeros(keys.shape, int)))


def stateful_rng(seed: ArrayLike | None = None, *, impl: Any = None) -> StatefulPRNG:
    """A generator of random numbers whose state changes with each draw.

    Args:
      seed: an integer; without it, one from the operating system. In a traced function it must be given.
      impl: the kind of its keys, as in `random.key`.

    >>> rng = stateful_rng(42)
    >>> rng.uniform(), rng.uniform()
    (Array(0.5302608, dtype=float32), Array(0.72766423, dtype=float32))
    """
    if seed is None:
        if state.builder is not None:
            raise TypeError("stateful_rng: seed must be given in a traced function; pass an integer")
        seed = int(np.random.SeedSequence().generate_state(1)[0] >> 1)
    return StatefulPRNG(random.key(seed, impl=impl), new_ref(0))


def _shape(size: Size, *others: ArrayLike) -> tuple[int, ...]:
    if size is None:
        return broadcast_shapes(*(aval_of(x).shape for x in others))
    return (size,) if isinstance(size, int) else tuple(size)


api_boundary_methods(StatefulPRNG)
_edge_of_face(globals())
