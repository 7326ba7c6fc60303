"""Loops, branches and calls."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.support.kernel_text.arith import signed, wrapped
from tests.support.kernel_text.machine import KernelTextError, Machine, Op, Rule

MOST_TRIPS = 100_000
"""A loop of a test does not run more often than this."""


def _for(machine: Machine, op: Op, low: Any, high: Any, step: Any, *state: Any) -> list[Any]:
    first, last, by = (int(signed(x)) for x in (low, high, step))
    if by <= 0:
        raise KernelTextError(f"the step of the loop is {by}")
    for i in range(first, last, by):
        state = machine.run(op.regions[0], [wrapped(np.int64(i), op.in_kinds[0].dtype), *state])
    return list(state)


def _while(machine: Machine, op: Op, *state: Any) -> list[Any]:
    holds, body = op.regions
    for _ in range(MOST_TRIPS):
        goes_on, *rest = machine.run(holds, state)
        if not goes_on:
            return rest
        state = machine.run(body, rest)
    raise KernelTextError(f"the loop did not end after {MOST_TRIPS} trips")


def _if(machine: Machine, op: Op, chosen: Any) -> list[Any]:
    return machine.run(op.regions[0 if chosen else 1], [])


def _index_switch(machine: Machine, op: Op, index: Any) -> list[Any]:
    cases = op.attributes["cases"]
    return machine.run(op.regions[cases.index(int(index)) + 1 if int(index) in cases else 0], [])


def _call(machine: Machine, op: Op, *args: Any) -> list[Any]:
    return machine.call(op.attributes["callee"], args)


SCF: dict[str, Rule] = {
    "scf.for": _for, "scf.while": _while, "scf.if": _if, "scf.index_switch": _index_switch,
    "scf.execute_region": lambda machine, op: machine.run(op.regions[0], []),
    "func.call": _call, "tt.call": _call,
}  # fmt: skip
