"""The warning of large captured arrays, under the flags `captured_constants_…`."""
from __future__ import annotations

import warnings

from xlamini.core import Jaxpr, Values, Var, aval_of, user_stacklevel
from xlamini.core.flags.jax_flags import captured_constants_report_frames, captured_constants_warn_bytes

_LISTED = 20


def warn_of_large_captures(name: str, jaxpr: Jaxpr, captured: Values) -> None:
    """Warn if the arrays that a function captured, the first inputs of its program, have more bytes than the flag says.

    A captured array stays in memory as long as the compiled program.
    """
    limit = captured_constants_warn_bytes.value
    total = sum(aval_of(x).nbytes for x in captured)
    if limit < 0 or total <= limit:
        return
    report = "".join(_lines(jaxpr, captured)) if captured_constants_report_frames.value else (
        "; flag captured_constants_report_frames=1 names the lines that use them"
    )  # fmt: skip
    warnings.warn(
        f"{name} captures {total:,} bytes of arrays, more than flag captured_constants_warn_bytes={limit}; pass them "
        f"as arguments, or set the flag to -1{report}",
        UserWarning,
        user_stacklevel(),
    )


def _lines(jaxpr: Jaxpr, captured: Values) -> list[str]:
    """One line for each captured array, the largest first, with the line of the program that first uses it."""
    pairs = sorted(zip(captured, jaxpr.invars, strict=False), key=lambda pair: -aval_of(pair[0]).nbytes)
    return [f"\n  {aval_of(x).str_short()}, {aval_of(x).nbytes:,} bytes, {_use(jaxpr, v)}" for x, v in pairs[:_LISTED]]


def _use(jaxpr: Jaxpr, var: Var) -> str:
    eqn = next((eqn for eqn in jaxpr.eqns if any(a is var for a in eqn.invars)), None)
    return "returned" if eqn is None else f"used by {eqn.primitive.name} at {eqn.provenance.source}"
