"""Rules about the arguments of the function."""
from __future__ import annotations

from collections.abc import Iterator

from xlamini.analysis.lints.finding import Finding, definition_of, finding
from xlamini.analysis.lints.program import LintedProgram
from xlamini.analysis.lints.registry import lint_rule


@lint_rule
def unused_argument(program: LintedProgram) -> Iterator[Finding]:
    """No operation reads an argument. Names that begin with `_` say so themselves."""
    results = set(program.jaxpr.outvars)
    for name, var in zip(program.names, program.jaxpr.invars, strict=False):
        if not name.startswith("_") and var not in results and not program.body.readers[var]:
            message = f"nothing reads the argument {name!r} ({var.aval.str_short()})"
            yield finding(definition_of(program.fun), message, "Remove it, or call it _ if its caller needs it.")
