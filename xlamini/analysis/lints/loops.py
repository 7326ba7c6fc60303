"""Rules about loops, and about what happens in each iteration."""
from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Hashable, Iterator

from xlamini.analysis.lints.finding import Finding, finding
from xlamini.analysis.lints.program import LintedBody, LintedProgram
from xlamini.analysis.lints.registry import lint_rule
from xlamini.core import Equation, Var, close_over
from xlamini.interpreters.key_reuse import key_uses

_REPEATS = 10


@lint_rule
def python_loop(program: LintedProgram) -> Iterator[Finding]:
    """A Python loop was traced iteration by iteration: the program repeats the same operations of the same lines."""
    for body in program.bodies:
        for start, period, repeats in _runs(body):
            eqn = body.jaxpr.eqns[start]
            message = f"a Python loop repeats {period} operations {repeats} times, each of which is compiled"
            yield finding(eqn, message, "Write it as lax.scan, or lax.fori_loop.", repeats)


def _runs(body: LintedBody) -> Iterator[tuple[int, int, int]]:
    """Where equations repeat, and the last repetition depends on the first: start, period, repetitions."""
    eqns = body.jaxpr.eqns
    keys = [_kind(eqn) for eqn in eqns]
    places: dict[Hashable, list[int]] = defaultdict(list)
    for number, key in enumerate(keys):
        places[key].append(number)
    end = 0
    for number, key in enumerate(keys):
        if number < end or key is None or len(places[key]) < _REPEATS:
            continue
        period = _next(places[key], number) - number
        repeats = _repeats(keys, number, period) if period > 0 else 0
        if repeats >= _REPEATS and _is_chain(body, number, period, repeats):
            end = number + period * repeats
            yield number, period, repeats


def _next(places: list[int], number: int) -> int:
    """The place after this one; the same if it is the last."""
    after = bisect_right(places, number)
    return places[after] if after < len(places) else number


def _repeats(keys: list[Hashable], start: int, period: int) -> int:
    stop = start
    while stop + period < len(keys) and keys[stop] == keys[stop + period]:
        stop += 1
    return (stop - start) // period + 1


def _is_chain(body: LintedBody, start: int, period: int, repeats: int) -> bool:
    """Whether the last repetition depends on the first one."""
    stop = start + period * repeats
    eqns = body.jaxpr.eqns
    reached = {v for eqn in eqns[start : start + period] for v in eqn.outvars}
    for eqn in eqns[start + period : stop]:
        if not reached.isdisjoint(a for a in eqn.invars if type(a) is Var):
            reached.update(eqn.outvars)
    return any(v in reached for eqn in eqns[stop - period : stop] for v in eqn.outvars)


def _kind(eqn: Equation) -> Hashable:
    """What the same operation of the same call has in all iterations."""
    source = eqn.provenance.source
    if source is None:
        return None
    types = tuple(a.aval for a in eqn.invars), tuple(v.aval for v in eqn.outvars)
    return eqn.primitive, source.code, source.instruction, types


@lint_rule
def callback_in_a_loop(program: LintedProgram) -> Iterator[Finding]:
    """Each iteration waits for Python."""
    for body, eqn in program.equations("pure_callback", "io_callback"):
        if body.loops:
            trips = body.loops[-1].params.get("length")
            message = f"Python is called in each iteration of the {body.loops[-1].primitive.name}"
            yield finding(eqn, message, "Call it once with all values, before or after the loop.", trips)


@lint_rule
def key_never_split(program: LintedProgram) -> Iterator[Finding]:
    """A random key is used twice, so that the numbers are the same."""
    for reuse in key_uses(close_over(program.jaxpr)).reuses:
        if reuse.first is reuse.second:
            message = "every iteration draws from the same key, and gets the same numbers"
            yield finding(reuse.first, message, "Scan over random.split(key, length), or fold in the iteration.")
        else:
            line = reuse.first.provenance.source
            message = f"the key was used already, at line {line.line if line else '?'}, so the numbers are the same"
            yield finding(reuse.second, message, "Split it first: key, here = random.split(key).")
