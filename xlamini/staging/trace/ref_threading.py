"""Threading refs through transformations: the value of a ref becomes an argument and a result.

A transformation runs its function through `retry_with_refs`. When the function touches a ref that was made outside, it
is traced again with that ref's value among its arguments and results, so the program stays pure.
"""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

from xlamini.core import Cell, Values
from xlamini.core.program.ref_cells import RefEscaped
from xlamini.core.tracing.state import state

Cells = tuple[Cell, ...]


def retry_with_refs(plain: Callable[..., Any], with_ref_args: Callable[..., Any], *args: Any) -> Any:
    """`plain(*args)`; if the user's function touches outer refs, `with_ref_args(cells, *args)` instead."""
    try:
        return plain(*args)
    except RefEscaped as touched:
        cells = with_touched((), touched)
    return run_with_refs(cells, with_ref_args, *args)


def run_with_refs(cells: Cells, with_ref_args: Callable[..., Any], *args: Any) -> Any:
    """`with_ref_args(cells, *args)`, with one more cell each time another ref is touched."""
    while True:
        try:
            return with_ref_args(cells, *args)
        except RefEscaped as touched:
            cells = with_touched(cells, touched)


def with_touched(cells: Cells, touched: RefEscaped) -> Cells:
    """The cells and the one that was touched; raises `touched` unless the trace that ended is the caller's own."""
    if touched.builder.parent is not state.builder or touched.cell in cells:
        raise touched
    return (*cells, touched.cell)


def values_of(cells: Cells) -> list[Any]:
    """The current values of the cells."""
    return [cell.read() for cell in cells]


def store(cells: Cells, values: Values) -> None:
    """Write these values to the cells."""
    for cell, value in zip(cells, values, strict=True):
        cell.write(value)


def run_with(
    cells: Cells, values: Values, fun: Callable[..., Any], *args: Any, **kwargs: Any
) -> tuple[Any, list[Any]]:
    """`fun(*args)` while the cells belong to the active builder and hold `values`; also their values afterwards."""
    before = [(cell.owner, cell.value) for cell in cells]
    try:
        for cell, value in zip(cells, values, strict=True):
            cell.owner, cell.value = state.builder, value
        out = fun(*args, **kwargs)
        return out, [cell.value for cell in cells]
    except RefEscaped as touched:
        for cell in cells[-1:] if touched.cell not in cells else ():
            cell.check_was_used(touched.builder.name or "the function")
        raise
    finally:
        for cell, (owner, value) in zip(cells, before, strict=True):
            cell.owner, cell.value = owner, value


def threaded(fun: Callable[..., Any], cells: Cells) -> Callable[..., tuple[Any, list[Any]]]:
    """The pure form of `fun`: takes the cells' values before its arguments, and returns their final values too."""

    def pure(values: Values, *args: Any, **kwargs: Any) -> tuple[Any, list[Any]]:
        return run_with(cells, values, fun, *args, **kwargs)

    vars(named_as(fun, pure))["__signature__"] = _signature_of(fun)
    return pure


def named_as(fun: Callable[..., Any], other: Callable[..., Any]) -> Callable[..., Any]:
    """`other`, presented as `fun`, but with parameters of its own: nobody looks through it."""
    functools.update_wrapper(other, fun)
    del vars(other)["__wrapped__"]
    return other


def _signature_of(fun: Callable[..., Any]) -> inspect.Signature:
    """The signature of `fun` with a parameter for the cells' values in front."""
    try:
        rest = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        kinds = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
        rest = [inspect.Parameter(name, kind) for name, kind in zip(("args", "kwargs"), kinds, strict=True)]
    name = "ref_values"
    while any(name == p.name for p in rest):  # of a function whose refs are threaded already
        name += "_"
    return inspect.Signature([inspect.Parameter(name, inspect.Parameter.POSITIONAL_ONLY), *rest])
