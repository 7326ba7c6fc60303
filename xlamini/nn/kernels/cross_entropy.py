"""The softmax cross-entropy of many classes: logits are read once, and only one number for each row is kept.

The logarithm of the denominator goes on from block to block of classes (Milakov and Gimelshein, "Online normalizer
calculation for softmax", 2018). The derivative, softmax less one at the label, is one elementwise program for XLA.
"""
from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from xlamini import lax, numpy as jnp
from xlamini.nn.kernels.flash_tiles import LEAST, NEVER, wide
from xlamini.nn.kernels.targets import GRID, LOOP, for_target, padded_to
from xlamini.nn.kernels.walks import Ids, Named, Reach, Sides, State, Steps, WalkPlace, WalkStart, walked
from xlamini.numpy.indexing.slices import ds
from xlamini.staging.trace.shape_struct import ShapeDtypeStruct
from xlamini.transforms.custom.custom_vjp import custom_vjp


@dataclass(frozen=True)
class Blocks:
    """The sizes of blocks, (rows, classes), in a grid and in a loop; `walk` is that of `targets.for_target`."""

    grid: tuple[int, int] = (256, 2048)
    loop: tuple[int, int] = (4, 1024)
    walk: str | None = None


@functools.partial(custom_vjp, nondiff_argnums=(0,))
def cross_entropy(blocks: Blocks, logits: Any, labels: Any) -> Any:
    """`logsumexp(logits, 1) - logits[row, label]`, in float32 or wider.

    `logits` has shape (rows, classes), `labels`, int32, (rows,).
    """
    return _logs_and_logit(blocks, logits, labels)[1]


def _logs_and_logit(blocks: Blocks, logits: Any, labels: Any) -> tuple[Any, Any]:
    logs, chosen = for_target(functools.partial(_forward, blocks), blocks.walk, logits, labels[:, None])
    return logs[:, 0], (logs - chosen)[:, 0]


def _kept(blocks: Blocks, logits: Any, labels: Any) -> Any:
    logs, loss = _logs_and_logit(blocks, logits, labels)
    return loss, (logits, labels, logs)


def _derivative(blocks: Blocks, kept: Any, ct: Any) -> tuple[Any, None]:
    logits, labels, logs = kept
    softmax = jnp.exp(logits.astype(logs.dtype) - logs[:, None])
    is_label = lax.broadcasted_iota(np.int32, logits.shape, 1) == labels[:, None]
    return ((softmax - is_label.astype(logs.dtype)) * ct[:, None]).astype(logits.dtype), None


cross_entropy.defvjp(_kept, _derivative)


@dataclass(frozen=True)
class _OverClasses:
    """A program for each block of rows, r, which goes through the blocks of classes, c."""

    walk: str
    sizes: tuple[int, int]
    tile: tuple[int, int]

    threads = 4, 2

    @property
    def grid(self) -> tuple[int, ...]:
        rows = -(-self.sizes[0] // self.tile[0])
        return (rows,) if self.walk == LOOP else (rows, self._count)

    @property
    def _count(self) -> int:
        return -(-self.sizes[1] // self.tile[1])

    def block(self) -> dict[str, int | None]:
        rows, classes = self.tile
        return {"r": rows, "c": padded_to(self.sizes[1], classes) if self.walk == LOOP else classes, "1": 1}

    def index(self, i: Any, j: Any = 0) -> dict[str, Any]:
        return {"r": i, "c": j, "1": 0}

    def steps(self, ids: Ids) -> Reach:
        return Reach(0, self._count)

    def meets(self, place: WalkPlace) -> Any:
        return True

    def place(self, ids: Ids, step: Any) -> WalkPlace:
        return WalkPlace(0, Sides(ids[0], step))

    def parts(self, place: WalkPlace) -> dict[str, Any]:
        return {"c": ds(place.blocks.keys * self.tile[1], self.tile[1])} if self.walk == LOOP else {}


def _forward(blocks: Blocks, walk: str, logits: Any, labels: Any) -> list[Any]:
    """The logarithms of denominators, and the logits of labels, of shape (rows, 1)."""
    over = _OverClasses(walk, logits.shape, _tile(blocks, walk, logits.shape))
    dtype = wide(logits.dtype)

    def fold(state: State, parts: list[Any], at: Sides) -> State:
        return _step(state, parts[0].astype(dtype), parts[1], at.keys * over.tile[1], logits.shape[1])

    column = (over.tile[0], 1)
    starts = [WalkStart(column, dtype, LEAST), WalkStart(column, dtype), WalkStart(column, dtype)]
    steps = Steps(starts, fold, _logs_and_chosen)
    outs = [Named("r1", ShapeDtypeStruct(labels.shape, dtype))] * 2
    return walked("cross_entropy", over, steps, [Named("rc", logits), Named("r1", labels)], outs)


def _tile(blocks: Blocks, walk: str, sizes: tuple[int, ...]) -> tuple[int, int]:
    """No larger than the array is, in powers of two."""
    most = blocks.grid if walk == GRID else blocks.loop
    least = (16, 128) if walk == GRID else (1, 16)
    rows, classes = (max(min(m, 1 << (n - 1).bit_length()), x) for m, n, x in zip(most, sizes, least, strict=True))
    return rows, min(classes, sizes[1]) if walk == GRID else classes


def _step(state: State, x: Any, label: Any, first: Any, classes: int) -> State:
    """The largest logit, the sum of exponentials and the label's logit, with those of one more block."""
    largest, total, chosen = state
    number = first + lax.broadcasted_iota(np.int32, x.shape, 1)
    if classes % x.shape[1]:
        x = jnp.where(number < classes, x, NEVER)
    most = jnp.maximum(largest, x.max(1, keepdims=True))
    total = total * jnp.exp(largest - most) + jnp.exp(x - most).sum(1, keepdims=True)
    return [most, total, chosen + jnp.where(number == label, x, 0.0).sum(1, keepdims=True)]


def _logs_and_chosen(state: State) -> list[Any]:
    largest, total, chosen = state
    return [largest + jnp.log(total), chosen]
