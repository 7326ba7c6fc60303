"""The order of a kernel's programs, and which of them have none."""
from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from xlamini.core.program.kernels import Kernel
from xlamini.transforms.pallas.check.params import InterpretParams


class Order:
    """The programs in the order in which they run; those that differ along a parallel axis have no order."""

    grid: tuple[int, ...]
    seed: int | None

    def __init__(self, kernel: Kernel, params: InterpretParams):
        self.grid, self.seed = kernel.grid, params.random_seed
        self.parallel: list[bool] = _parallel(kernel, params)

    def programs(self) -> Iterator[tuple[int, ...]]:
        """The indices of each program; along parallel axes in an order by the seed."""
        rng = np.random.default_rng(self.seed)
        shuffled = [p and self.seed is not None for p in self.parallel]
        axes = [rng.permutation(n) if s else np.arange(n) for n, s in zip(self.grid, shuffled, strict=True)]
        for place in np.ndindex(*self.grid):
            yield tuple(int(axis[i]) for axis, i in zip(axes, place, strict=True))

    def number(self, ids: Sequence[int]) -> int:
        """The number of a program."""
        return int(np.ravel_multi_index(tuple(ids), self.grid)) if self.grid else 0

    def ids(self, number: int) -> tuple[int, ...]:
        """The indices of a program by its number."""
        return tuple(map(int, np.unravel_index(number, self.grid))) if self.grid else ()

    def is_unordered(self, a: int, b: int) -> bool:
        """Whether two programs may run at the same time."""
        return any(p and i != j for p, i, j in zip(self.parallel, self.ids(a), self.ids(b), strict=True))


def _parallel(kernel: Kernel, params: InterpretParams) -> list[bool]:
    """For each axis of the grid whether its programs have no order."""
    if params.target == "gpu" or (params.target is None and params.detect_races):
        return [True] * len(kernel.grid)
    said = getattr(kernel.compiler_params, "dimension_semantics", None) or ()
    found = [str(getattr(s, "value", s)).lower() == "parallel" for s in said]
    return [False] * (len(kernel.grid) - len(found)) + found
