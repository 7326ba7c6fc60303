"""Rules about formulas that lose digits, or have no derivative where it is asked for."""
from __future__ import annotations

from collections.abc import Iterator

from xlamini.analysis.lints.finding import Finding, finding
from xlamini.analysis.lints.program import LintedBody, LintedProgram, apart, is_number, is_written
from xlamini.analysis.lints.registry import lint_rule
from xlamini.core import Atom, Equation, Var

_UNSAFE = dict.fromkeys(("acos", "acosh", "asin", "atanh", "log", "log1p", "pow", "rsqrt", "sqrt"), 0) | {"div": 1}
"""Operations with an infinite derivative or value somewhere, and the operand that decides."""
_COMPARISONS = ("eq", "ge", "gt", "le", "lt", "ne")
_LOGIC = ("and", "not", "or", "xor")


@lint_rule
def where_around_unsafe(program: LintedProgram) -> Iterator[Finding]:
    """A `where` discards values outside of a function's domain, but 0 times its infinite derivative is NaN."""
    for body, select in program.equations("select_n"):
        compared = _compared(body, select.invars[0])
        for case in select.invars[1:]:
            eqn = body.root_maker(case, *_UNSAFE)
            if eqn is None or not is_written(eqn) or not apart(eqn, select):
                continue
            operand = body.root(eqn.invars[_UNSAFE[eqn.primitive.name]])
            if type(operand) is Var and operand in compared:
                message = f"{eqn.primitive.name} is computed also where `where` discards it; its gradient is NaN there"
                fix = "Replace the operand first: safe = jnp.where(mask, x, 1.0), and use safe inside."
                yield finding(eqn, message, fix)


def _compared(body: LintedBody, mask: Atom) -> set[Atom]:
    """The variables that a mask compares."""
    eqn = body.root_maker(mask, *_COMPARISONS, *_LOGIC)
    if eqn is None:
        return set()
    if eqn.primitive.name in _COMPARISONS:
        return {body.root(a) for a in eqn.invars}
    return set().union(*(_compared(body, a) for a in eqn.invars))


@lint_rule
def log_of_one_plus(program: LintedProgram) -> Iterator[Finding]:
    """log(1 + x) is 0 for small x."""
    for body, eqn in program.equations("log"):
        add = body.maker(eqn.invars[0])
        if add is not None and add.primitive.name == "add" and _is_of_user(add, eqn) and _has_one(body, add):
            yield finding(eqn, "log(1 + x) loses the digits of a small x", "Use jnp.log1p(x).")


@lint_rule
def exp_minus_one(program: LintedProgram) -> Iterator[Finding]:
    """exp(x) - 1 is 0 for small x."""
    for body, eqn in program.equations("sub"):
        exp = body.root_maker(eqn.invars[0], "exp")
        if exp is not None and _is_of_user(exp, eqn) and is_number(body.root(eqn.invars[1]), 1):
            yield finding(eqn, "exp(x) - 1 loses the digits of a small x", "Use jnp.expm1(x).")


@lint_rule
def log_of_softmax(program: LintedProgram) -> Iterator[Finding]:
    """The logarithm of a softmax is -inf where the softmax is 0 in floating point."""
    for body, eqn in program.equations("log"):
        softmax = body.root_maker(eqn.invars[0], "softmax") or _written_softmax(body, eqn.invars[0])
        if softmax is not None and _is_of_user(softmax, eqn):
            message = "the logarithm of a softmax is -inf where the softmax rounds to 0"
            yield finding(eqn, message, "Use xlamini.nn.log_softmax(x).")


def _written_softmax(body: LintedBody, atom: Atom) -> Equation | None:
    """The division of exponentials by their sum that an atom is the result of."""
    div = body.root_maker(atom, "div")
    if div is None or body.root_maker(div.invars[0], "exp") is None:
        return None
    total = body.root_maker(div.invars[1], "reduce_sum")
    return div if total is not None and body.root(total.invars[0]) is body.root(div.invars[0]) else None


def _has_one(body: LintedBody, add: Equation) -> bool:
    return any(is_number(body.root(a), 1) for a in add.invars)


def _is_of_user(inner: Equation, outer: Equation) -> bool:
    return apart(inner, outer) and is_written(inner) and is_written(outer)
