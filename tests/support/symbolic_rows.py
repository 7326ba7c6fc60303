"""A row of tests/rows for symbolic sizes: exported once, called for several, beside the plain function."""
from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import xlamini
from tests.rows.row import Array, Row, Sample
from tests.support import checks
from xlamini import export
from xlamini.core.sizes.scope import SymbolicScope
from xlamini.errors import InconclusiveDimensionOperation

NAMES = "ab"
REFUSALS = InconclusiveDimensionOperation, NotImplementedError
"""The errors for what depends on the values of sizes, and for what has no operation for unknown sizes."""


def sizes_of(row: Row, sample: Sample, dtype: str, count: int) -> list[int]:
    """The first numbers among the sizes of the arguments, each of which becomes a symbol at every occurrence."""
    sizes = [n for x in row.arguments(sample, dtype, row.rng("symbolic")) for n in x.shape if n > 1]
    return list(dict.fromkeys(sizes))[:count]


def exported(row: Row, arguments: Sequence[Array], sizes: Sequence[int], least: int = 1) -> Any:
    """The row's function, exported for symbols in place of these sizes."""
    scope = SymbolicScope([f"{name} >= {least}" for name in NAMES])
    symbols = {n: scope.variable(name) for n, name in zip(sizes, NAMES, strict=False)}
    types = [xlamini.ShapeDtypeStruct([symbols.get(n, n) for n in x.shape], x.dtype) for x in arguments]
    return export.export(xlamini.jit(row.op))(*types)


def check_symbolic(row: Row, sample: Sample, dtype: str, count: int) -> int:
    """Compare the exported function with the row's, for its own sizes and for others; how many calls were compared.

    No call is, if the row's function takes no other sizes. It raises what the export raises, one of REFUSALS if that
    is for a reason.
    """
    sizes = sizes_of(row, sample, dtype, count)
    if len(sizes) < count:
        return 0
    with checks.wide(row, dtype):
        samples = [sample, *others(sample, sizes)]
        every = [row.arguments(each, dtype, row.rng("symbolic", i)) for i, each in enumerate(samples)]
        plain = [x for x in every if _takes(row, x)]
        if len(every) > 1 and len(plain) == 1:
            return 0
        made = exported(row, every[0], sizes)
        for arguments in plain:
            _compare(row, made, arguments)
    return len(plain)


def others(sample: Sample, sizes: Sequence[int]) -> Iterator[Sample]:
    """The sample with other numbers for its sizes: 1 and larger ones; none if an argument is made by hand."""
    if any(arg.values for arg in sample):
        return
    for new in (dict.fromkeys(sizes, 1), {n: n + 2 + i for i, n in enumerate(sizes)}):
        yield [dataclasses.replace(arg, shape=tuple(new.get(n, n) for n in arg.shape)) for arg in sample]


def _takes(row: Row, arguments: Sequence[Array]) -> bool:
    """Whether the function takes arguments of these sizes."""
    try:
        row.op(*arguments)
    except (TypeError, ValueError, IndexError):
        return False
    return True


def _compare(row: Row, made: Any, arguments: Sequence[Array]) -> None:
    found, expected = checks.leaves(made.call(*arguments)), checks.leaves(row.op(*arguments))
    assert [(np.shape(x), x.dtype) for x in found] == [(np.shape(x), x.dtype) for x in expected]
    for x, y in zip(found, expected, strict=True):
        if isinstance(y.dtype, np.dtype):
            checks.assert_close(x, y, max(4 * row.tolerance_of(y.dtype), 1e-6), row.name)
