"""Threading cells through transformations: a function that uses a cell becomes one of its value.

A transformation runs through `with_cells`. Where the user's function touches a cell from outside, it runs again with
the cell among its arguments and results.
"""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core.ref_cells import Cell, Touched
from xlamini.core.tracer import state

Cells = tuple[Cell, ...]


def with_cells(plain: Callable[..., Any], threading: Callable[..., Any], *args: Any) -> Any:
    """`plain(*args)`; if the user's function turns out to touch cells, `threading(cells, *args)` in its place."""
    cells: Cells = ()
    while True:
        try:
            return threading(cells, *args) if cells else plain(*args)
        except Touched as touched:
            if touched.builder.parent is not state.builder or touched.cell in cells:
                raise
            cells = (*cells, touched.cell)


def keep_trace() -> None:
    """Say that the trace going on will serve later calls too: what cells hold must not become part of it."""
    assert state.builder is not None
    state.builder.kept = True


def values_of(cells: Cells) -> list[Any]:
    """What the cells hold here."""
    return [cell.read() for cell in cells]


def store(cells: Cells, values: Sequence[Any]) -> None:
    """Let the cells hold these values from here on."""
    for cell, value in zip(cells, values, strict=True):
        cell.write(value)


def run_with(
    cells: Cells, values: Sequence[Any], fun: Callable[..., Any], *args: Any, **kwargs: Any
) -> tuple[Any, list[Any]]:
    """`fun(*args)` while the cells belong to the active builder and hold these values; and what they hold then."""
    before = [(cell.owner, cell.value) for cell in cells]
    try:
        for cell, value in zip(cells, values, strict=True):
            cell.owner, cell.value = state.builder, value
        out = fun(*args, **kwargs)
        return out, [cell.value for cell in cells]
    finally:
        for cell, (owner, value) in zip(cells, before, strict=True):
            cell.owner, cell.value = owner, value


def threaded(fun: Callable[..., Any], cells: Cells) -> Callable[..., tuple[Any, list[Any]]]:
    """`fun(*args)` as a function of the cells' values and the args that also returns the cells' last values."""

    @functools.wraps(fun)
    def pure(values: Sequence[Any], *args: Any, **kwargs: Any) -> tuple[Any, list[Any]]:
        return run_with(cells, values, fun, *args, **kwargs)

    pure.__signature__ = _signature_of(fun)  # type: ignore[attr-defined]
    del pure.__wrapped__
    return pure


def _signature_of(fun: Callable[..., Any]) -> inspect.Signature:
    """The function's signature after one more parameter."""
    values = inspect.Parameter("ref_values", inspect.Parameter.POSITIONAL_ONLY)
    try:
        rest = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        kinds = inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD
        rest = [inspect.Parameter(name, kind) for name, kind in zip(("args", "kwargs"), kinds, strict=True)]
    return inspect.Signature([values, *rest])
