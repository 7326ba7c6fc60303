"""Periodic runs in a sequence of symbols: `xABCABCABCy` has a run of period 3 from the second symbol on.

Two symbols one period apart are equal throughout a run. The candidate periods are the most frequent distances between
equal n-grams; the longest run is taken first, then the sequences to its left and right are searched.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

_PIECE = 6
"""The length of an n-gram, in symbols."""

_LAGS = 6
"""The number of occurrences of an n-gram within one period that are still handled."""

_CANDIDATES = 24
"""The number of candidate periods tried."""


class Run(NamedTuple):
    """A run: symbols `start` to `stop` repeat with a period."""

    start: int
    stop: int
    period: int


def find_runs(symbols: Sequence[int], min_period: int, min_count: int) -> list[Run]:
    """Disjoint runs of at least `min_count` periods, in order."""
    found: list[Run] = []
    waiting = [(0, np.asarray(symbols, np.uint64))]
    while waiting:
        offset, part = waiting.pop()
        run = _longest(part, min_period, min_count)
        if run is not None:
            found.append(Run(offset + run.start, offset + run.stop, run.period))
            waiting += [(offset, part[: run.start]), (offset + run.stop, part[run.stop :])]
    return sorted(found)


def _longest(symbols: np.ndarray, min_period: int, min_count: int) -> Run | None:
    """The run that repeats the most symbols; of equal ones, that with the shortest period."""
    best = None
    for period in _periods(symbols, min_period):
        start, length = _longest_true(symbols[:-period] == symbols[period:])
        enough = length >= period * (min_count - 1)
        if enough and (best is None or length > best.stop - best.start - best.period):
            best = Run(start, start + length + period, period)
    return best


def _periods(symbols: np.ndarray, min_period: int) -> list[int]:
    """The most frequent distances between equal n-grams, ascending."""
    if len(symbols) < 2 * min_period + _PIECE:
        return []
    pieces = _pieces(symbols)
    order = np.argsort(pieces, kind="stable")
    distances = []
    for lag in range(1, _LAGS + 1):
        same = pieces[order[lag:]] == pieces[order[:-lag]]
        distances.append((order[lag:] - order[:-lag])[same])
    values, counts = np.unique(np.concatenate(distances), return_counts=True)
    enough = values >= min_period
    values, counts = values[enough], counts[enough]
    return sorted(values[np.argsort(-counts, kind="stable")[:_CANDIDATES]].tolist())


def _pieces(symbols: np.ndarray) -> np.ndarray:
    """A hash of the n-gram at each position."""
    total = np.zeros(len(symbols) - _PIECE + 1, np.uint64)
    for i in range(_PIECE):
        total = total * np.uint64(0x9E3779B97F4A7C15) + symbols[i : i + len(total)]
    return total


def _longest_true(flags: np.ndarray) -> tuple[int, int]:
    """The start and length of the longest run of True."""
    edges = np.flatnonzero(np.diff(np.concatenate([[False], flags, [False]])))
    if not len(edges):
        return 0, 0
    lengths = edges[1::2] - edges[::2]
    longest = int(np.argmax(lengths))
    return int(edges[2 * longest]), int(lengths[longest])
