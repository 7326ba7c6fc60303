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
from xlamini.core.program.form import FusedOperation, Platform
from xlamini.nn.attention_products import both, logs_of, seen_keys, weighted_means
from xlamini.nn.cudnn_attention import backward, fits_cudnn, forward, pattern
from xlamini.nn.kernels.flash_attention import Arrays
from xlamini.nn.kernels.flash_tiles import Flash
from xlamini.nn.kernels.targets import GRID, LOOP
from xlamini.nn.tiled_attention import attend, bias_derivatives, derivatives, masked
from xlamini.transforms.custom.custom_vjp import custom_vjp
from xlamini.transforms.derivatives.jvp import jvp
from xlamini.transforms.derivatives.vjp import vjp
from xlamini.transforms.fused_call import fused_call

LEAST_PLACES = 512
"""From so many queries and keys on kernels are faster than XLA's operations, which write all products to memory."""
_MOST_FEATURES = 256


@dataclass(frozen=True)
class Attention(FusedOperation):
    """An operation on queries (b, t, n, h), keys and values (b, s, heads of keys, h), a bias and a mask if there are.

    The results are the means, as queries, and the logarithms of the denominators, (b, n, t).
    """

    scale: float
    before: int | None
    after: int | None
    has_bias: bool
    has_mask: bool

    name = "attention"

    def program(self, q: Any, k: Any, v: Any, *added: Any) -> list[Any]:
        """The results by XLA's operations."""
        bias, mask = self._added(added)
        seen = both(mask, seen_keys(q.shape[1], k.shape[1], self.before, self.after))
        mean, fit = weighted_means(q, k, v, bias, seen, self.scale)
        return [mean, logs_of(fit, q)]

    def kernel(self, platform: Platform, avals: Avals) -> Any:
        """The results by kernels."""
        return self.chosen(platform, avals, self._by_cudnn, self._by_tiles)

    def chosen(self, platform: Platform, avals: Avals, by_cudnn: Any, by_tiles: Any) -> Any:
        """The better of two ways on a platform; None if there is none."""
        q, k = avals[:2]
        if not self._fits_kernels(platform, q, k):
            return None
        plain = not (self.has_bias or self.has_mask)
        if platform.is_gpu and plain and fits_cudnn(q, k, self.before, self.after):
            return by_cudnn
        return functools.partial(by_tiles, LOOP if platform.is_gpu else GRID)

    def _fits_kernels(self, platform: Platform, q: ShapedArray, k: ShapedArray) -> bool:
        """Whether kernels take the arrays; each query must see a key but for the mask."""
        narrow = q.dtype.itemsize == 2
        keeps_one = self.before is None or (self.before >= 0 and q.shape[1] <= k.shape[1])
        keeps_one &= self.after is None or self.after >= 0
        return keeps_one and q.shape[3] <= _MOST_FEATURES and (narrow or platform.name == "tpu")

    def _by_cudnn(self, q: Any, k: Any, v: Any) -> Sequence[Any]:
        return forward(q, k, v, pattern(self.scale, self.before, self.after))

    def _by_tiles(self, walk: str, q: Any, k: Any, v: Any, *added: Any) -> Sequence[Any]:
        mean, logs = attend(self.arrays(q, k, v, added), self.flash(walk))
        mean = mean.swapaxes(1, 2)
        if self.has_mask:
            of_all = jnp.repeat(v.mean(1, keepdims=True, dtype=np.float32), q.shape[2] // v.shape[2], 2)
            mean = jnp.where(self.sees_nothing(q, k, added), of_all.astype(mean.dtype), mean)
        return mean, logs

    def arrays(self, q: Any, k: Any, v: Any, added: Sequence[Any]) -> Arrays:
        """The arrays as kernels take them, with the mask in the bias."""
        q, k, v = (x.swapaxes(1, 2) for x in (q, k, v))
        return Arrays(q, k, v, masked(*self._added(added)))

    def flash(self, walk: str) -> Flash:
        """How kernels compute it."""
        return Flash(self.scale, self.before, self.after, walk=walk)

    def sees_nothing(self, q: Any, k: Any, added: Sequence[Any]) -> Any:
        """Which queries see no key, for which kernels give 0; of shape (b, t, n, 1)."""
        seen = both(added[-1], seen_keys(q.shape[1], k.shape[1], self.before, self.after))
        return ~seen.any(3).swapaxes(1, 2)[..., None]

    def _added(self, added: Sequence[Any]) -> tuple[Any, Any]:
        return added[0] if self.has_bias else None, added[-1] if self.has_mask else None


@dataclass(frozen=True)
class AttentionDerivative(FusedOperation):
    """The operation that gives the cotangents of queries, keys and values.

    Its operands are those of the attention, its results, and the cotangent of the means.
    """

    of: Attention

    name = "attention_derivative"

    def program(self, q: Any, k: Any, v: Any, *rest: Any) -> Sequence[Any]:
        """The cotangents by XLA's operations, among which are those of the attention itself."""
        *added, _, _, ct = rest
        return vjp(lambda *x: self.of.program(*x, *added)[0], q, k, v)[1](ct)

    def kernel(self, platform: Platform, avals: Avals) -> Any:
        """The cotangents by kernels."""
        return self.of.chosen(platform, avals, self._by_cudnn, self._by_tiles)

    def _by_cudnn(self, *operands: Any) -> Sequence[Any]:
        q, k, v, mean, logs, ct = operands
        return backward(q, k, v, mean, logs, ct, pattern(self.of.scale, self.of.before, self.of.after))

    def _by_tiles(self, walk: str, q: Any, k: Any, v: Any, *rest: Any) -> Sequence[Any]:
        found = derivatives(*_back(self.of, q, k, v, rest), self.of.flash(walk))
        of_q, of_k, of_v = (x.swapaxes(1, 2) for x in found)
        return [of_q, of_k, of_v + self._of_all(q, k, v, rest) if self.of.has_mask else of_v]

    def _of_all(self, q: Any, k: Any, v: Any, rest: Sequence[Any]) -> Any:
        """The cotangent of each value from the queries that see no key, and take the mean of all values."""
        *added, _, _, ct = rest
        alone = jnp.where(self.of.sees_nothing(q, k, added), ct, 0).sum(1, keepdims=True, dtype=np.float32)
        of_heads = alone.reshape(len(alone), 1, v.shape[2], -1, v.shape[3]).sum(3) / v.shape[1]
        return of_heads.astype(v.dtype)


@dataclass(frozen=True)
class BiasDerivative(FusedOperation):
    """The operation that gives the cotangent of the bias, from the same operands."""

    of: Attention

    name = "attention_bias_derivative"

    def program(self, q: Any, k: Any, v: Any, bias: Any, *rest: Any) -> Sequence[Any]:
        """The cotangent by XLA's operations."""
        *mask, _, _, ct = rest
        return vjp(lambda bias: self.of.program(q, k, v, bias, *mask)[0], bias)[1](ct)

    def kernel(self, platform: Platform, avals: Avals) -> Any:
        """The cotangent by a kernel."""
        return self.of.chosen(platform, avals, self._by_tiles, self._by_tiles)

    def _by_tiles(self, walk: str, q: Any, k: Any, v: Any, bias: Any, *rest: Any) -> Sequence[Any]:
        found = bias_derivatives(*_back(self.of, q, k, v, (bias, *rest)), self.of.flash(walk))
        return [_summed_to(found, bias.shape).astype(bias.dtype)]


@functools.partial(custom_vjp, nondiff_argnums=(0,))
def fused_attention(how: Attention, operands: tuple[Any, ...]) -> Any:
    """The means. Reverse mode has kernels too; forward mode and further derivatives are those of XLA's operations."""
    return fused_call(*operands, operation=how)[0]


def _kept(how: Attention, operands: tuple[Any, ...]) -> Any:
    mean, logs = fused_call(*operands, operation=how)
    return mean, (operands, mean, logs)


def _derivative(how: Attention, kept: Any, ct: Any) -> tuple[tuple[Any, ...]]:
    operands, mean, logs = kept
    given = *operands, mean, logs, ct
    found = fused_call(*given, operation=AttentionDerivative(how))
    of_bias = fused_call(*given, operation=BiasDerivative(how)) if how.has_bias else []
    return ((*found, *of_bias, *([None] if how.has_mask else [])),)


def _pushed(how: Attention, primals: Any, tangents: Any) -> Any:
    return jvp(lambda operands: how.program(*operands)[0], primals, tangents)


fused_attention.defvjp(_kept, _derivative)
fused_attention.defjvp(_pushed)


# --- helpers


def _back(how: Attention, q: Any, k: Any, v: Any, rest: Sequence[Any]) -> tuple[Arrays, Any, Any, Any]:
    """What kernels of derivatives take."""
    *added, mean, logs, ct = rest
    return how.arrays(q, k, v, added), mean.swapaxes(1, 2), logs, ct.swapaxes(1, 2)


def _summed_to(x: Any, shape: Sequence[int]) -> Any:
    """The sum over the axes along which an array of this shape has one element."""
    axes = tuple(axis for axis, (n, m) in enumerate(zip(x.shape, shape, strict=True)) if n != m)
    return x.sum(axes, keepdims=True) if axes else x
