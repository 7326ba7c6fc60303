"""Batch dimensions: a function of one batch mapped over those in front, where size 1 is broadcast."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xlamini import lax, numpy as jnp
from xlamini.transforms.vmap import vmap


def mapped(fun: Callable[..., Any], n_batch: int, *operands: Any) -> Any:
    """`fun` mapped over the first `n_batch` dimensions of all operands; a dimension of size 1 is broadcast.

    An operand is mapped only along dimensions of which it has more than one element, so that nothing is copied.
    """
    if n_batch == 0:
        return fun(*operands)
    size = max((x.shape[0] for x in operands), key=lambda n: (n != 1, n))
    axes = tuple(0 if x.shape[0] == size else None for x in operands)
    slices = [x if axis == 0 else lax.squeeze(x, (0,)) for x, axis in zip(operands, axes, strict=True)]
    return vmap(lambda *xs: mapped(fun, n_batch - 1, *xs), in_axes=axes)(*slices)


def full_batch(x: Any, batch: tuple[int, ...]) -> Any:
    """A buffer with its batch dimensions broadcast to their full sizes."""
    shape = (*batch, *x.shape[len(batch) :])
    return x if x.shape == shape else jnp.broadcast_to(x, shape)


def fits_batch(found: tuple[int, ...], expected: tuple[int, ...], n_batch: int) -> bool:
    """Whether a buffer's shape is as expected, but for batch dimensions of size 1."""
    if len(found) != len(expected):
        return False
    return all(n == m or (n == 1 and i < n_batch) for i, (n, m) in enumerate(zip(found, expected, strict=True)))
