"""A row of tests/rows for symbolic sizes: exported once, called for several, beside the plain function."""
from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

import xlamini
from tests.rows.row import Array, Row, Sample
from tests.support import checks
from xlamini import export, numpy as jnp
from xlamini.core.sizes.scope import SymbolicScope
from xlamini.errors import InconclusiveDimensionOperation, MissingRule

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
        plain = [x for x in every if _takes(row.op, x)]
        if len(every) > 1 and len(plain) == 1:
            return 0
        made = exported(row, every[0], sizes)
        for arguments in plain:
            _compare(row, made.call, row.op, arguments)
    return len(plain)


def check_empty(row: Row, sample: Sample, dtype: str) -> None:
    """Compare the exported function with the row's where its first size is 0, if the row's function takes that."""
    sizes = sizes_of(row, sample, dtype, 1)
    if not sizes or any(arg.values for arg in sample):
        return
    with checks.wide(row, dtype):
        each = sample, _resized(sample, sizes, 0)
        plain, empty = (row.arguments(s, dtype, row.rng("symbolic")) for s in each)
        if _takes(row.op, empty):
            made = exported(row, plain, sizes, least=0)
            for arguments in (empty, plain):
                _compare(row, made.call, row.op, arguments)


def check_buckets(row: Row, sample: Sample, dtype: str) -> None:
    """Compare the function in buckets of its first size with the row's, unless the padding or the symbol is refused.

    Arrays are padded with zeros, and what is computed of these is infinite or NaN in some rows.
    """
    sizes = sizes_of(row, sample, dtype, 1)
    if not sizes:
        return
    with checks.wide(row, dtype):
        samples = [sample, *others(sample, sizes)]
        every = [row.arguments(each, dtype, row.rng("symbolic", i)) for i, each in enumerate(samples)]
        specs = tuple(", ".join("n" if n == sizes[0] else str(n) for n in x.shape) for x in every[0])
        in_buckets = xlamini.jit(row.op, buckets={"n": [sizes[0] + 3]}, shapes_specs=specs)
        for arguments in every:
            if _takes(row.op, arguments):
                with contextlib.suppress(TypeError, ValueError, *REFUSALS):
                    _compare(row, in_buckets, row.op, arguments)


def check_derivatives(row: Row, sample: Sample, dtype: str) -> None:
    """Compare gradients and batches of the function from a file with those of the row's, for two sizes.

    Nothing is compared if the row's function does not take the other size.
    """
    sizes = sizes_of(row, sample, dtype, 1)
    if not sizes or any(arg.values for arg in sample):
        return
    with checks.wide(row, dtype):
        each = sample, _resized(sample, sizes, sizes[0] + 2)
        batches = [[row.arguments(s, dtype, row.rng("symbolic", i)) for i in range(checks.BATCH)] for s in each]
        if not all(_takes(row.op, arguments) for batch in batches for arguments in batch):
            return
        gradient = _gradient(row, sample, batches[0][0])
        made = exported(row, batches[0][0], sizes)
        call = export.deserialize(made.serialize(0 if gradient is None else 1)).call
        for batch in batches:
            if gradient is not None:
                _compare(row, gradient(call), gradient(row.op), batch[0])
            if row.batched:
                stacked = [np.stack(arrays) for arrays in zip(*batch, strict=True)]
                _compare(row, xlamini.vmap(call), xlamini.vmap(row.op), stacked)


def _gradient(row: Row, sample: Sample, arguments: Sequence[Array]) -> Any:
    """Makes a function that differentiates one in the row's real arguments; None if the row has no such derivative."""
    known = row.differentiable_argnums(sample, "float32")
    places = tuple(i for i in known if arguments[i].dtype.kind == "f")

    def made(fun: Any) -> Any:
        return xlamini.grad(_weighted(fun), places)

    return made if places and _takes(made(row.op), arguments) else None


def _weighted(fun: Any) -> Any:
    """The sum of a function's real results, each with a weight of its own."""

    def total(*args: Any) -> Any:
        leaves = [x for x in checks.leaves(fun(*args)) if np.issubdtype(x.dtype, np.floating)]
        return sum(jnp.sum(x * jnp.cos(jnp.arange(x.size)).reshape(x.shape)) for x in leaves)

    return total


def others(sample: Sample, sizes: Sequence[int]) -> Iterator[Sample]:
    """The sample with other numbers for its sizes: 1 and larger ones; none if an argument is made by hand."""
    if any(arg.values for arg in sample):
        return
    for new in (dict.fromkeys(sizes, 1), {n: n + 2 + i for i, n in enumerate(sizes)}):
        yield [dataclasses.replace(arg, shape=tuple(new.get(n, n) for n in arg.shape)) for arg in sample]


def _resized(sample: Sample, sizes: Sequence[int], new: int) -> Sample:
    """The sample with another number for the first of its sizes."""
    return [dataclasses.replace(arg, shape=tuple(new if n == sizes[0] else n for n in arg.shape)) for arg in sample]


def _takes(fun: Any, arguments: Sequence[Array]) -> bool:
    """Whether the function takes arguments of these sizes."""
    try:
        fun(*arguments)
    except (TypeError, ValueError, IndexError, ZeroDivisionError, MissingRule):
        return False
    return True


def _compare(row: Row, fun: Any, plain: Any, arguments: Sequence[Array]) -> None:
    found, expected = checks.leaves(fun(*arguments)), checks.leaves(plain(*arguments))
    assert [(np.shape(x), x.dtype) for x in found] == [(np.shape(x), x.dtype) for x in expected]
    for x, y in zip(found, expected, strict=True):
        if isinstance(y.dtype, np.dtype):
            checks.assert_close(x, y, max(4 * row.tolerance_of(y.dtype), 1e-6), row.name)
