"""Masks of attention: which keys a query sees, known when a program is traced."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Window = tuple[int | None, int | None]


class Mask:
    """Which keys a query sees, as if an array of booleans, (queries, keys); `&` and `|` join two of one shape.

    >>> (CausalMask((2, 2)) | FullMask((2, 2)))[:, :]
    array([[ True,  True],
           [ True,  True]])
    """

    shape: tuple[int, ...]

    def window(self) -> Window | None:
        """How many keys a query sees before and after its own place; None if that does not say it."""
        return None

    def array(self) -> np.ndarray:
        """The booleans."""
        raise NotImplementedError

    def __getitem__(self, index: Any) -> np.ndarray:
        return self.array()[index]

    def __or__(self, other: Mask) -> Mask:
        return NumpyMask(self.array() | other.array())

    def __and__(self, other: Mask) -> Mask:
        return NumpyMask(self.array() & other.array())


@dataclass(frozen=True)
class NumpyMask(Mask):
    """A mask by an array of booleans.

    >>> NumpyMask(np.eye(2, dtype=bool)).shape
    (2, 2)
    """

    of: np.ndarray

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return self.of.shape

    def array(self) -> np.ndarray:
        return self.of

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NumpyMask) and np.array_equal(self.of, other.of)

    def __hash__(self) -> int:
        return hash((self.of.shape, self.of.tobytes()))


@dataclass(frozen=True)
class _Band(Mask):
    shape: tuple[int, int]  # type: ignore[assignment]

    def array(self) -> np.ndarray:
        before, after = self.window() or (None, None)
        away = np.arange(self.shape[1]) - np.arange(self.shape[0])[:, None]
        seen = np.ones(self.shape, bool)
        if before is not None:
            seen &= away >= -before
        return seen if after is None else seen & (away <= after)


@dataclass(frozen=True)
class FullMask(_Band):
    """A query sees all keys.

    >>> FullMask((1, 2))[:, :]
    array([[ True,  True]])
    """

    def window(self) -> Window:
        return None, None


@dataclass(frozen=True)
class CausalMask(_Band):
    """Query t sees keys up to t + `offset`.

    >>> CausalMask((2, 2))[:, :]
    array([[ True, False],
           [ True,  True]])
    """

    offset: int = 0
    shard_count: int = 1

    def window(self) -> Window:
        return None, self.offset


@dataclass(frozen=True)
class LocalMask(_Band):
    """Query t sees keys from t + `offset` less `window_size[0]` up to it and `window_size[1]` more; None: all.

    >>> LocalMask((2, 3), (0, 1), 0)[:, :]
    array([[ True,  True, False],
           [False,  True,  True]])
    """

    window_size: Window = (None, None)
    offset: int = 0
    shard_count: int = 1

    def window(self) -> Window:
        before, after = self.window_size
        return None if before is None else before - self.offset, None if after is None else after + self.offset


class MultiHeadMask:
    """A mask for each query head.

    >>> MultiHeadMask([CausalMask((2, 2))] * 4).shape
    (4, 2, 2)
    """

    def __init__(self, masks: Sequence[Mask]) -> None:
        if not masks or len({m.shape for m in masks}) != 1:
            raise ValueError(f"MultiHeadMask: give masks of one shape, got {[m.shape for m in masks]}")
        self.masks: tuple[Mask, ...] = tuple(masks)

    @property
    def shape(self) -> tuple[int, ...]:
        """The heads, the queries and the keys."""
        return (len(self.masks), *self.masks[0].shape)


def make_causal_mask(shape: tuple[int, int], offset: int = 0) -> np.ndarray:
    """The array of a `CausalMask`.

    >>> make_causal_mask((1, 2))
    array([[ True, False]])
    """
    return CausalMask(shape, offset).array()


def make_local_attention_mask(shape: tuple[int, int], window_size: Window, *, offset: int = 0) -> np.ndarray:
    """The array of a `LocalMask`.

    >>> make_local_attention_mask((1, 3), (0, 1))
    array([[ True,  True, False]])
    """
    return LocalMask(shape, window_size, offset).array()
