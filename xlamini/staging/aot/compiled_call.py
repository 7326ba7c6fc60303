"""Calls of a compiled program through C++ dispatch, as those of a jitted function."""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core import Values, flatten, flatten_from_user
from xlamini.runtime.execution.dispatch import FastPath, cpp_jit
from xlamini.runtime.execution.dispatch_errors import guarded
from xlamini.runtime.versions import DISPATCH_ERRORS
from xlamini.staging.aot.mismatch import check_arguments, check_shardings
from xlamini.staging.compile.program import BoundProgram, Program
from xlamini.staging.trace.hi_arguments import has_arrays_of, lower_hi_values, with_values
from xlamini.staging.trace.tracing import TracedCall


class CompiledCall:
    """A call of exactly the types that a program was compiled for; `committed` says whether its results are."""

    def __init__(self, call: TracedCall, program: Program, captured: Values, committed: bool):
        self._call = call
        self._bound = BoundProgram(program, captured, call.trace.out_tree, call.trace.names, committed)
        self._takes_values, self._returns_values = has_arrays_of(call.in_tree), has_arrays_of(call.trace.out_tree)

    def in_cpp(self) -> Callable[..., Any]:
        """The function that runs it; C++ does so by itself when types come again."""
        function = cpp_jit(self._call.name, self.run, self.on_miss)
        return guarded(function, self.explain, self._donated if any(self._call.donated) else None)

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """The outputs, computed without C++ dispatch: what is compiled runs as such under flag `disable_jit` too."""
        return self.on_miss(*args, **kwargs)[0]

    def on_miss(self, *args: Any, **kwargs: Any) -> tuple[Any, FastPath | None, bool]:
        """The outputs, and how C++ computes them; TypeError, with the difference, for arguments of other types."""
        leaves = self._leaves(args, kwargs)
        out = self._bound(leaves)
        if self._takes_values or self._returns_values:
            return with_values(out) if self._returns_values else out, None, False
        return out, self._bound.in_cpp(leaves, out) if self._bound.program.runs_in_cpp else None, False

    def _leaves(self, args: Values, kwargs: dict[str, Any]) -> list[Any]:
        given = (args, kwargs)
        leaves, tree = flatten_from_user(lower_hi_values(given) if self._takes_values else given)
        check_arguments(self._call, leaves, tree)
        check_shardings(self._call, leaves, self._shardings)
        return leaves

    @functools.cached_property
    def _shardings(self) -> list[Any]:
        return self._bound.program.shardings_of_inputs()[len(self._bound.captured) :]

    def explain(self, error: Exception, args: Values, kwargs: dict[str, Any]) -> None:
        """Raise the typed error behind one that C++ raised for a call with these arguments, if there is one."""
        if isinstance(error, DISPATCH_ERRORS):
            bound = self._bound
            bound.program.explain(error, [*bound.captured, *self._leaves(args, kwargs)], bound.names)

    def _donated(self, args: Sequence[Any], kwargs: dict[str, Any]) -> list[Any]:
        pairs = zip(flatten((args, kwargs))[0], self._call.donated, strict=True)
        return [x for x, is_donated in pairs if is_donated]
