"""Calls of jitted functions with refs, among the arguments or touched inside: the function of their values runs.

C++ cannot run such a call by itself.
"""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

from xlamini.core import Values
from xlamini.core.program.ref_cells import RefEscaped
from xlamini.staging.run.jit.cpp_function import wrapped
from xlamini.staging.run.programs import with_refs
from xlamini.staging.trace.ref_arguments import pure, run_with_values
from xlamini.staging.trace.ref_threading import Cells, run_with_refs, store, threaded, values_of, with_touched

if TYPE_CHECKING:
    from xlamini.staging.run.jit.jitted_function import Jitted


def run_with_ref_arguments(jitted: Jitted, args: Values, kwargs: dict[str, Any]) -> Any:
    """Run the function of opened arguments, which returns the final values of the refs among them besides."""
    if jitted.of_values is None:
        outs = jitted.options.out_shardings
        options = jitted.options._replace(out_shardings=outs and (outs, None))
        jitted.of_values = wrapped(type(jitted)(pure(jitted.fun), options))
    return run_with_values(f"{jitted.name} for jit", jitted.of_values, args, kwargs)


def run_with_touched(
    jitted: Jitted, touched: RefEscaped, args: Values, kwargs: dict[str, Any]
) -> tuple[Any, None, bool]:
    """Run with the values of the touched refs as further arguments and results."""

    def run(cells: Cells, args: Values, kwargs: dict[str, Any]) -> tuple[Any, None, bool]:
        threading = cells[0].memo.get((jitted, cells))
        if threading is None:
            made = type(jitted)(threaded(jitted.fun, cells), jitted.options.shifted())
            threading = with_refs.keep(cells[0], (jitted, cells), wrapped(made))
        out, values = threading(values_of(cells), *args, **kwargs)
        store(cells, values)
        return out, None, False

    return run_with_refs(with_touched((), touched), run, args, kwargs)
