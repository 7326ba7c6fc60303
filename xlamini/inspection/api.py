"""`inspect`, the public function."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from xlamini.core.errors.api_boundary import api_boundary
from xlamini.staging.run.jit.jit_api import jit
from xlamini.staging.trace.arguments import check_callable

if TYPE_CHECKING:
    from xlamini.inspection.report import Report


def inspect(
    fun: Callable[..., Any],
    *,
    targets: Sequence[str] = ("here",),
    source: bool = True,
    values: bool = False,
    measure: bool = False,
) -> Callable[..., Report]:
    """A function that shows how `fun` becomes kernels, from the user's line through each rewrite and XLA's passes.

    The result takes the arguments of `fun`, arrays or `ShapeDtypeStruct`s, traces, lowers and compiles `fun` for each
    of the `targets`, and returns a report: `report.save("step.html")` writes a page that opens in any browser,
    `report.text("kernels")` is a screen for terminals, `report.json()` the data, `report.check(peak="<14GiB")` compares
    with limits. "here" is the device of the arguments; others are the names that `xlamini.target` takes. The text of
    source files becomes part of the report, unless `source` is false. With `values` the function also runs, equation by
    equation, on arguments that must be arrays. With `measure` the compiled function runs here on copies of such
    arguments, 13 to 154 times, its effects too: beside the predicted times, the kernels, the equations and the lines
    have those that the profiler saw, and the call has the median by the clock, for `report.check(time="<300ms")`.

    Raises what `jit` raises for a function that it cannot trace. A target whose compiler is missing, or a program that
    does not compile, is an entry of the report.

    >>> report = xlamini.inspect(lambda x: xlamini.numpy.tanh(x @ x).sum())(xlamini.numpy.ones((4, 4)))
    >>> [target["name"] for target in report.json()["targets"]]
    ['here']
    """
    check_callable("inspect", fun)
    if isinstance(targets, str) or not targets:
        raise TypeError(f"inspect: targets must be a list of names such as ['here', 'gpu:h200'], got {targets!r}")

    @api_boundary
    def inspected(*args: Any, **kwargs: Any) -> Report:
        from xlamini.inspection.build import ReportOptions, build_report  # for those who inspect
        from xlamini.inspection.report import Report

        jitted = fun if hasattr(fun, "trace") else jit(fun)
        return Report(build_report(jitted, args, kwargs, ReportOptions(tuple(targets), source, values, measure)))

    return inspected
