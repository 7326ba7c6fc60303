"""Rules about memory: intermediates, captured arrays, donation, copies."""
from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from xlamini.analysis.lints.finding import Finding, definition_of, finding, size_text
from xlamini.analysis.lints.program import LintedBody, LintedProgram, is_written
from xlamini.analysis.lints.registry import lint_rule
from xlamini.core import Atom, Equation, Var, aval_of

_LARGE = 2**20
_BLOW_UP = 64
_CHAIN = 8


@lint_rule
def broadcast_blows_up(program: LintedProgram) -> Iterator[Finding]:
    """Two small arrays are broadcast against each other, so that the result is many times as large as both."""
    for body, eqn in program.equations():
        if len(eqn.invars) < 2 or not is_written(eqn) or not all(_is_broadcast(body, a) for a in eqn.invars):
            continue
        out, roots = eqn.outvars[0].aval, [_before_broadcast(body, a) for a in eqn.invars]
        needed = sum(a.aval.nbytes for a in roots)
        if not np.issubdtype(out.dtype, np.inexact) or out.nbytes < max(_LARGE, _BLOW_UP * needed):
            continue
        shapes = " and ".join(str(a.aval.shape) for a in roots)
        message = (
            f"{eqn.primitive.name} of shapes {shapes} gives {out.shape}, {size_text(out.nbytes)}, which is "
            f"{out.nbytes // needed} times its operands"
        )
        fix = "If both should be paired by element, give them one shape (y[:, None], or p[:, 0]); else contract by dot."
        yield finding(eqn, message, fix, out.nbytes / needed)


def _is_broadcast(body: LintedBody, atom: Atom) -> bool:
    eqn = body.maker(atom)
    if eqn is None or eqn.primitive.name != "broadcast_in_dim":
        return False
    return type(eqn.invars[0]) is Var and body.root_maker(atom, "iota") is None


def _before_broadcast(body: LintedBody, atom: Atom) -> Atom:
    while (eqn := body.maker(atom)) is not None and eqn.primitive.name == "broadcast_in_dim":
        atom = eqn.invars[0]
    return atom


@lint_rule
def large_captured_array(program: LintedProgram) -> Iterator[Finding]:
    """An array above 1 MB is captured, not passed: it is a part of the program, and stays as long as that does."""
    for var, value in zip(program.jaxpr.constvars, program.consts, strict=True):
        size = aval_of(value).nbytes
        if size > _LARGE:
            name = _name_of_captured(program.fun, value)
            reader = next(iter(program.body.readers[var]), None)
            message = f"the program captures {name}, {size_text(size)}, and keeps it as long as it is cached"
            fix = "Pass it as an argument."
            yield finding(definition_of(program.fun) if reader is None else reader, message, fix)


def _name_of_captured(f: Callable[..., Any], value: Any) -> str:
    """The name of the variable that the function reads it from, else its type."""
    try:
        found = inspect.getclosurevars(inspect.unwrap(f))
    except TypeError:
        return f"an array {aval_of(value).str_short()}"
    names = [name for name, x in {**found.globals, **found.nonlocals}.items() if _is_captured(x, value)]
    return repr(names[0]) if names else f"an array {aval_of(value).str_short()}"


def _is_captured(x: Any, value: Any) -> bool:
    """Whether a program that has `value` captured `x`: the same object, or a copy, as of an ndarray."""
    return x is value or (type(x) is type(value) is np.ndarray and x.shape == value.shape and bool((x == value).all()))


@lint_rule
def unused_donation(program: LintedProgram) -> Iterator[Finding]:
    """No result has the type of a donated argument, so its memory is of no use."""
    free = Counter((a.aval.shape, a.aval.dtype) for a in program.jaxpr.outvars)
    for name, donated, var in zip(program.names, program.donated, program.jaxpr.invars, strict=False):
        kind = var.aval.shape, var.aval.dtype
        if donated and not free[kind]:
            message = f"the donated argument {name!r} ({var.aval.str_short()}) fits no result, so nothing reuses it"
            yield finding(definition_of(program.fun), message, "Leave it out of donate_argnums.")
        elif donated:
            free[kind] -= 1


@lint_rule
def concatenation_in_a_loop(program: LintedProgram) -> Iterator[Finding]:
    """An array grows by concatenation, so that each step copies all that there is."""
    lengths: dict[Equation, list[Equation]] = {}
    for body, eqn in program.equations("concatenate"):
        before = next((m for a in eqn.invars if (m := body.root_maker(a, "concatenate")) in lengths), None)
        chain = lengths[eqn] = [*(lengths[before] if before else ()), eqn]
        is_last = not any(r.primitive is eqn.primitive for r in body.readers[eqn.outvars[0]])
        if is_last and len(chain) >= _CHAIN and _is_one_line(chain):
            copied = sum(e.outvars[0].aval.nbytes for e in chain)
            ratio = copied / eqn.outvars[0].aval.nbytes
            message = f"{len(chain)} concatenations in a row write {ratio:.0f} times the bytes of the result"
            yield finding(eqn, message, "Collect the parts in a list and concatenate once, or use lax.scan.", ratio)


def _is_one_line(chain: list[Equation]) -> bool:
    sources = {(s.code, s.instruction) for e in chain if (s := e.provenance.source) is not None}
    return len(sources) == 1
