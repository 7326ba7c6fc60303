"""Attention that a platform computes by the best way it has: XLA's operations, kernels in tiles, or cuDNN's.

The choice is made when a program is lowered. All ways give the same numbers but for rounding: a query that sees no key
takes the mean of all values.
"""
from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from xlamini import numpy as jnp
from xlamini.core import Avals, ShapedArray
from xlamini.core.dtypes.table import HALVES
from xlamini.core.program.form import FusedOperation, Platform
from xlamini.nn.attention_products import both, logs_of, seen_keys, weighted_means
from xlamini.nn.cudnn_attention import backward, fits_cudnn, forward, pattern
from xlamini.nn.kernels.flash_attention import Arrays
from xlamini.nn.kernels.flash_tiles import Flash
from xlamini.nn.kernels.targets import walk_on
from xlamini.nn.tiled_attention import attend, derivatives, masked
from xlamini.transforms.custom.custom_vjp import custom_vjp
from xlamini.transforms.derivatives.jvp import jvp
from xlamini.transforms.derivatives.vjp import vjp
from xlamini.transforms.fused_call import fused_call

LEAST_PLACES = 512
"""From so many queries and keys on kernels are faster than XLA's operations, which write all products to memory."""
_MOST_FEATURES = 256


@dataclass(frozen=True)
class Attention(FusedOperation):
    """An operation on queries (b, t, n, h), keys and values (b, s, heads of keys, h), and a mask if there is one.

    The results are the means, as queries, and the logarithms of the denominators, (b, n, t). A bias is no operand:
    where a large negative one hides all keys of a query, the logarithm has no digits left for the sum.
    """

    scale: float
    before: int | None = None
    after: int | None = None
    precision: Any = None
    has_mask: bool = False

    name = "attention"

    def program(self, q: Any, k: Any, v: Any, *mask: Any) -> list[Any]:
        """The results by XLA's operations."""
        seen = both(*mask, seen_keys(q.shape[1], k.shape[1], self.before, self.after))
        mean, fit = weighted_means(q, k, v, None, seen, self.scale)
        return [mean, logs_of(fit, q)]

    def kernel(self, platform: Platform, avals: Avals) -> Any:
        """The results by kernels."""
        return self.chosen(platform, avals, self._by_cudnn, self._by_tiles)

    def chosen(self, platform: Platform, avals: Avals, by_cudnn: Any, by_tiles: Any) -> Any:
        """The better of two ways on a platform; None if there is none."""
        q, k = avals[:2]
        if not self._fits_kernels(platform, q, k):
            return None
        if platform.is_gpu and not self.has_mask and fits_cudnn(q, k, self.before, self.after):
            return by_cudnn
        return functools.partial(by_tiles, walk_on(platform))

    def _fits_kernels(self, platform: Platform, q: ShapedArray, k: ShapedArray) -> bool:
        """Whether kernels take the arrays; each query must see a key but for the mask."""
        is_usual = q.dtype in HALVES or (q.dtype == np.float32 and self.precision is None and not platform.is_gpu)
        keeps_one = self.before is None or (self.before >= 0 and q.shape[1] <= k.shape[1])
        keeps_one &= self.after is None or self.after >= 0
        return keeps_one and is_usual and 0 not in q.shape and q.shape[3] <= _MOST_FEATURES

    def _by_cudnn(self, q: Any, k: Any, v: Any) -> Sequence[Any]:
        return forward(q, k, v, pattern(self.scale, self.before, self.after))

    def _by_tiles(self, walk: str, q: Any, k: Any, v: Any, *mask: Any) -> Sequence[Any]:
        mean, logs = attend(self.arrays(q, k, v, *mask), self.flash(walk))
        mean = mean.swapaxes(1, 2)
        if self.has_mask:
            of_all = jnp.repeat(v.mean(1, keepdims=True, dtype=np.float32), q.shape[2] // v.shape[2], 2)
            mean = jnp.where(self.sees_nothing(q, k, *mask), of_all.astype(mean.dtype), mean)
        return mean, logs

    def arrays(self, q: Any, k: Any, v: Any, mask: Any = None) -> Arrays:
        """The arrays as kernels take them, with the mask as a bias."""
        q, k, v = (x.swapaxes(1, 2) for x in (q, k, v))
        return Arrays(q, k, v, masked(None, mask))

    def flash(self, walk: str) -> Flash:
        """How kernels compute it."""
        return Flash(self.scale, self.before, self.after, walk=walk)

    def sees_nothing(self, q: Any, k: Any, mask: Any) -> Any:
        """Which queries see no key, for which kernels give 0; of shape (b, t, n, 1)."""
        seen = both(mask, seen_keys(q.shape[1], k.shape[1], self.before, self.after))
        return ~seen.any(3).swapaxes(1, 2)[..., None]


@dataclass(frozen=True)
class AttentionDerivative(FusedOperation):
    """The operation that gives the cotangents of queries, keys and values.

    Its operands are those of the attention, its results, and the cotangent of the means.
    """

    of: Attention

    name = "attention_derivative"

    def program(self, q: Any, k: Any, v: Any, *rest: Any) -> Sequence[Any]:
        """The cotangents by XLA's operations, among which are those of the attention itself."""
        *mask, _, _, ct = rest
        return vjp(lambda *x: self.of.program(*x, *mask)[0], q, k, v)[1](ct)

    def kernel(self, platform: Platform, avals: Avals) -> Any:
        """The cotangents by kernels."""
        return self.of.chosen(platform, avals, self._by_cudnn, self._by_tiles)

    def _by_cudnn(self, *operands: Any) -> Sequence[Any]:
        q, k, v, mean, logs, ct = operands
        return backward(q, k, v, mean, logs, ct, pattern(self.of.scale, self.of.before, self.of.after))

    def _by_tiles(self, walk: str, q: Any, k: Any, v: Any, *rest: Any) -> Sequence[Any]:
        *mask, mean, logs, ct = rest
        back = self.of.arrays(q, k, v, *mask), mean.swapaxes(1, 2), logs, ct.swapaxes(1, 2)
        of_q, of_k, of_v = (x.swapaxes(1, 2) for x in derivatives(*back, self.of.flash(walk)))
        return [of_q, of_k, of_v + self._of_all(q, k, v, mask[0], ct) if mask else of_v]

    def _of_all(self, q: Any, k: Any, v: Any, mask: Any, ct: Any) -> Any:
        """The cotangent of each value from the queries that see no key, and take the mean of all values."""
        alone = jnp.where(self.of.sees_nothing(q, k, mask), ct, 0).sum(1, keepdims=True, dtype=np.float32)
        of_heads = alone.reshape(len(alone), 1, v.shape[2], -1, v.shape[3]).sum(3) / v.shape[1]
        return of_heads.astype(v.dtype)


@functools.partial(custom_vjp, nondiff_argnums=(0,))
def fused_attention(how: Attention, operands: tuple[Any, ...]) -> Any:
    """The means. Reverse mode has kernels too; forward mode and further derivatives are those of XLA's operations."""
    return fused_call(*operands, operation=how)[0]


def _kept(how: Attention, operands: tuple[Any, ...]) -> Any:
    mean, logs = fused_call(*operands, operation=how)
    return mean, (operands, mean, logs)


def _derivative(how: Attention, kept: Any, ct: Any) -> tuple[tuple[Any, ...]]:
    operands, mean, logs = kept
    found = fused_call(*operands, mean, logs, ct, operation=AttentionDerivative(how))
    return ((*found, *([None] if how.has_mask else [])),)


def _pushed(how: Attention, primals: Any, tangents: Any) -> Any:
    return jvp(lambda operands: how.program(*operands)[0], primals, tangents)


fused_attention.defvjp(_kept, _derivative)
fused_attention.defjvp(_pushed)
