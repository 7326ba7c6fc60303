"""The fingerprint of a multi-process program, which the processes compare before its first run."""
from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from xlamini.core import Equation, Jaxpr, subjaxprs
from xlamini.runtime.processes.agreement import check_same_program
from xlamini.staging.compile.compile_request import CompileRequest


def check_before_first_run(lowered: CompileRequest, devices: Sequence[Any]) -> Callable[[], None]:
    """A check, to be called, that all processes of these devices run the same program."""
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
    """An operation with its types; the jaxprs in its params are listed separately."""
    types = ", ".join(a.aval.str_short() for a in eqn.invars)
    results = ", ".join(v.aval.str_short() for v in eqn.outvars)
    return f"{eqn.primitive.name}({types}) -> {results}"


def _place(eqn: Equation) -> str:
    source = eqn.provenance.source
    return "an unknown line" if source is None else f"{source.file}:{source.line}"
