"""Calls of jitted functions with refs, among the arguments or touched inside: a function of their values runs.

Which refs a call touches is found by tracing, and is likely to be the same in the next call (in_place.py runs it).
"""
from __future__ import annotations

import functools
import weakref
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from xlamini.core import Cell, Tracer, Values, flatten
from xlamini.core.program.ref_cells import FREED, RefEscaped
from xlamini.core.program.ref_types import AbstractRef, RefVariable
from xlamini.core.tracing.state import state
from xlamini.staging.run.jit.in_place import InPlace, NoneTouched
from xlamini.staging.run.programs import with_refs
from xlamini.staging.trace.arguments import has_refs
from xlamini.staging.trace.ref_arguments import OpenedRefs, RefArgument, is_ref_argument, pure
from xlamini.staging.trace.ref_threading import Cells, named_as, run_with_refs, threaded, with_touched

if TYPE_CHECKING:
    from xlamini.staging.run.jit.jitted_function import Jitted
    from xlamini.staging.trace.tracing import Trace

Missed = tuple[Any, None, bool]
"""The output of a call, in the form that C++ expects."""


class RefCalls:
    """The calls of one jitted function with refs; the refs that it touched last are touched again, as a rule."""

    def __init__(self, jitted: Jitted):
        self._jitted = jitted
        self._of_arguments: InPlace | None = None
        self._of_variables: Jitted | None = None
        """The function of refs that are variables of a program."""
        self._touched: Sequence[weakref.ref[Cell]] = ()
        self.of_cells: dict[Cells, InPlace] = {}
        """The functions of the values of refs that it closes over."""

    def run(self, args: Values, kwargs: dict[str, Any]) -> Missed | None:
        """A call like an earlier one; None if there was none like it."""
        if self._of_arguments is not None:
            flat = flatten((args, kwargs))
            if has_refs(flat[0]):
                return self.with_arguments(args, kwargs, flat)
        cells = self._cells_of_last_call() if self._touched and state.builder is None else None
        if not cells:
            return None
        try:
            return self._with_cells(cells, args, kwargs)
        except (RefEscaped, NoneTouched):  # it touches others, or with these arguments none
            self._touched = ()
            return None

    def with_arguments(self, args: Values, kwargs: dict[str, Any], flat: Any = None) -> Missed:
        """A call with refs among the arguments, which `flat` are as leaves and treedef, if the caller has them."""
        if state.builder is not None and (found := self._nested(args, kwargs)) is not None:
            return found
        in_place = self._of_opened()
        refs = OpenedRefs(f"{self._jitted.name} for jit", (args, kwargs), flat)
        opened, named = refs.tree
        return in_place.run(refs.cells, refs.nodes, opened, named, refs.passed()), None, False

    def _nested(self, args: Values, kwargs: dict[str, Any]) -> Missed | None:
        """A call that is part of a program which takes the refs; None if one holds a value, or one that is touched."""
        refs, jitted = OpenedRefs(f"{self._jitted.name} for jit", (args, kwargs), held=Cell.variable), self._jitted
        if jitted.options.in_shardings or any(node.value is None for node in refs.nodes):
            return None
        if self._of_variables is None:
            outs = jitted.options.out_shardings
            options = jitted.options._replace(out_shardings=outs and (None, outs))
            self._of_variables = type(jitted)(_of_arguments(jitted.fun), options)
        try:
            with refs.passed():
                _, out = self._of_variables.traced_call(*refs.tree)
        except RefEscaped:
            return None
        return out, None, False

    def _of_opened(self) -> InPlace:
        """The function of the values of the refs among its arguments."""
        if self._of_arguments is None:
            self._of_arguments = InPlace(self._jitted, _of_arguments(self._jitted.fun), self._jitted.options)
        return self._of_arguments

    def with_touched(self, touched: RefEscaped, args: Values, kwargs: dict[str, Any]) -> Missed:
        """A call of the function, which touches this ref and maybe others."""
        return run_with_refs(with_touched((), touched), self._with_cells, args, kwargs)

    def _with_cells(self, cells: Cells, args: Values, kwargs: dict[str, Any]) -> Missed:
        nodes, in_place = _nodes_of(cells), self._in_place(cells)
        out = in_place.run(cells, nodes, (nodes, *args), kwargs, nullcontext())
        self._touched = list(map(weakref.ref, cells))
        return out, None, False

    def _in_place(self, cells: Cells) -> InPlace:
        """The function of the values of these cells."""
        jitted, known = self._jitted, self.of_cells.get(cells)
        if known is not None:
            return known
        options, ins = jitted.options.shifted(), jitted.options.in_shardings
        if isinstance(ins, tuple | list):
            options = options._replace(in_shardings=(None, *ins))
        return with_refs.keep(self, cells, InPlace(jitted, _of_cells(jitted.fun, cells), options, len(cells)))

    def traced(self, args: Values, kwargs: dict[str, Any]) -> tuple[Trace, Cells]:
        """The trace of a call, and the cells of the refs that the function closes over."""
        refs = OpenedRefs(f"{self._jitted.name} for jit", (args, kwargs))
        if not refs.cells:
            return self._traced(args, kwargs)
        with refs.passed():
            return self._of_opened().jitted.ref_calls()._traced(*refs.tree)

    def _traced(self, args: Values, kwargs: dict[str, Any]) -> tuple[Trace, Cells]:
        try:
            return self._jitted.trace(self._jitted.plan(args, kwargs)), ()
        except RefEscaped as touched:
            return run_with_refs(with_touched((), touched), self._traced_with_cells, args, kwargs)

    def _traced_with_cells(self, cells: Cells, args: Values, kwargs: dict[str, Any]) -> tuple[Trace, Cells]:
        jitted = self._in_place(cells).jitted
        return jitted.trace(jitted.plan((_nodes_of(cells), *args), kwargs)), cells

    def _cells_of_last_call(self) -> Cells | None:
        cells = tuple(found for reference in self._touched if (found := reference()) is not None)
        is_usable = len(cells) == len(self._touched) and all(c.owner is None and c.value is not FREED for c in cells)
        return cells if is_usable else None


def _nodes_of(cells: Cells) -> list[RefArgument]:
    return [RefArgument(type(cell), cell.read()) for cell in cells]


def _of_arguments(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The function of arguments in which nodes replace refs."""
    of_values = pure(fun)

    @functools.wraps(fun)
    def of_nodes(*args: Any, **kwargs: Any) -> tuple[list[Any], Any]:
        nodes = [x for x in flatten((args, kwargs), is_ref_argument)[0] if is_ref_argument(x)]
        for node in nodes:
            node.value = _as_held(node.value)
        given = [node.value for node in nodes]
        out, last = of_values(*args, **kwargs)
        return _changed(given, last), out

    return of_nodes


def _of_cells(fun: Callable[..., Any], cells: Cells) -> Callable[..., Any]:
    """The function of nodes that replace the cells, and of its own arguments."""
    of_values = threaded(fun, cells)

    def of_nodes(nodes: Sequence[RefArgument], /, *args: Any, **kwargs: Any) -> tuple[list[Any], Any]:
        given = [_as_held(node.value) for node in nodes]
        out, last = of_values(given, *args, **kwargs)
        return _changed(given, last), out

    return named_as(of_values, of_nodes)


def _as_held(value: Any) -> Any:
    """A traced value as its cell holds it: a ref of the program, or the value."""
    return RefVariable(value) if type(value) is Tracer and type(value.aval) is AbstractRef else value


def _changed(given: Sequence[Any], last: Sequence[Any]) -> list[Any]:
    """The final values of what is no ref of the program, each in a tuple; None for what was only read."""
    return [None if new is old else (new,) for old, new in zip(given, last, strict=True)]
