"""What a program over several processes is known by to the others: a hash of it, and its operations line by line."""
from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from xlamini.core.jaxpr import Equation, Jaxpr, subjaxprs
from xlamini.runtime.processes.agreement import check_same_program

if TYPE_CHECKING:
    from xlamini.staging.compile.program import LoweredProgram


def check_before_first_run(lowered: LoweredProgram, devices: Sequence[Any]) -> Callable[[], None]:
    """A check that all processes that these devices belong to run the same program."""
    name, jaxpr = lowered.name, lowered.pruned
    fingerprint = hashlib.sha256(str(lowered.module).encode()).hexdigest()
    return lambda: check_same_program(devices, name, fingerprint, lambda: list(_lines(jaxpr)))


def _lines(jaxpr: Jaxpr) -> Iterator[tuple[str, str]]:
    for eqn in jaxpr.eqns:
        yield _text(eqn), _place(eqn)
        if eqn.primitive.higher_order:
            for inner in subjaxprs(eqn):
                yield from _lines(inner)


def _text(eqn: Equation) -> str:
    """An operation with its types, which says enough for a reader; jaxprs among its params follow by themselves."""
    types = ", ".join(a.aval.str_short() for a in eqn.invars)
    results = ", ".join(v.aval.str_short() for v in eqn.outvars)
    return f"{eqn.primitive.name}({types}) -> {results}"


def _place(eqn: Equation) -> str:
    source = eqn.provenance.source
    return "an unknown line" if source is None else f"{source.file}:{source.line}"
