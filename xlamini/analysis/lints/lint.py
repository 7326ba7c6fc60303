"""`lint`: what is slow or odd in a program, found without running it."""
from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from xlamini.analysis.lints.finding import Finding, Findings
from xlamini.analysis.lints.program import LintedProgram, bodies_of
from xlamini.analysis.lints.registry import Rule, rules as registered
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.staging.aot.stages import Traced, closed
from xlamini.staging.compile.pipeline import discharged
from xlamini.staging.run.jit.jit_api import jit
from xlamini.staging.trace.arguments import check_callable


def lint(
    f: Callable[..., Any],
    *,
    rules: Sequence[str | Rule] | None = None,
    ignore: Sequence[str] = (),
    targets: Sequence[str] = (),
) -> Callable[..., Findings]:
    """A function that says what is slow or odd in the program of `f`, where, and which edit mends it.

    The result takes the arguments of `f`, traces it and runs nothing. It returns findings, which are false if there are
    none: each has a `place` (file, line, variable), a `message`, a `fix`, the name of its `rule`, and a `ratio` where
    it is known how many times too much is done. `rules` are the rules to apply, by name or as functions, all of them by
    default (`xlamini.debug.lint_rules`); `ignore` are names of rules to leave out. `targets` are platforms, such as
    "tpu", for which every operation should have a kernel.

    Raises ValueError for the name of a rule that there is not, and what `jit` raises for a function that it cannot
    trace.

    >>> def f(x):
    ...     x.at[0].set(1.0)
    ...     return x
    >>> xlamini.lint(f)(xlamini.numpy.zeros(3)).found[0].rule
    'discarded_update'
    """
    check_callable("lint", f)
    chosen = _chosen(rules, ignore)

    @api_boundary
    def linted(*args: Any, **kwargs: Any) -> Findings:
        return Findings(list(found_in(_program(f, args, kwargs, targets), chosen)))

    return linted


def _chosen(rules: Sequence[str | Rule] | None, ignore: Sequence[str]) -> dict[str, Rule]:
    for name in (*(rules or ()), *ignore):
        if isinstance(name, str) and name not in registered:
            raise ValueError(f"lint: there is no rule {name!r}; the rules are {', '.join(registered)}")
    given = registered.values() if rules is None else [registered[r] if isinstance(r, str) else r for r in rules]
    return {rule.__name__: rule for rule in given if rule.__name__ not in ignore}


def _program(f: Any, args: Any, kwargs: dict[str, Any], targets: Sequence[str]) -> LintedProgram:
    jitted: Any = f if hasattr(f, "trace") else jit(f)
    return program_of(f, jitted.trace(*args, **kwargs), targets)


def program_of(f: Callable[..., Any], traced: Traced, targets: Sequence[str] = ()) -> LintedProgram:
    """A traced function as rules see it."""
    program = discharged(traced._call.trace)
    jaxpr = closed(program).jaxpr
    return LintedProgram(f, jaxpr, program.captured, bodies_of(jaxpr), program.names, traced._call.donated, targets)


def found_in(program: LintedProgram, chosen: Mapping[str, Rule] = registered) -> Iterator[Finding]:
    """The findings of these rules; of those that a line has several times, as in a Python loop, the first."""
    seen = set()
    for name, rule in chosen.items():
        for finding in rule(program):
            key = name, finding.place.file, finding.place.line, finding.message
            if key not in seen:
                seen.add(key)
                yield finding._replace(rule=name)
