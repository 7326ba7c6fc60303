"""Evaluation of a kernel's program, equation by equation, on buffers and on values that may be Twins.

Equations on refs are accesses of buffers. Loops, branches and calls are walked if a ref, an undefined value or a check
is in them; all other equations are computed at once, as the user's would be outside of a kernel.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from xlamini.core import Equation, Jaxpr, Values, once
from xlamini.core.dtypes import issubdtype
from xlamini.core.program.jaxpr import subjaxprs
from xlamini.interpreters.bindings import bound, read
from xlamini.transforms.callbacks.callback import Callback
from xlamini.transforms.pallas.check.accesses import load, store
from xlamini.transforms.pallas.check.copies import signal, start_copy, wait, wait_copy
from xlamini.transforms.pallas.check.machine import Machine
from xlamini.transforms.pallas.check.masks import atomic, compare_and_swap, masked_load, masked_store
from xlamini.transforms.pallas.check.memory import CheckedBuffer
from xlamini.transforms.pallas.check.twins import Twin, first, host, on_both
from xlamini.transforms.pallas.debug import debug_check_p

Rule = Callable[[Machine, Equation, Sequence[Any]], Sequence[Any]]


def walk(machine: Machine, jaxpr: Jaxpr, operands: Values) -> list[Any]:
    """The results of a program on values and buffers."""
    env, outer = bound(jaxpr, operands), machine.eqn
    for eqn in jaxpr.eqns:
        machine.eqn = eqn
        outs = _rule(eqn, inputs := read(env, eqn.invars))(machine, eqn, inputs)
        env.update(zip(eqn.outvars, outs, strict=True))
    machine.eqn = outer
    return read(env, jaxpr.outvars)


def _rule(eqn: Equation, inputs: Values) -> Rule:
    rule = RULES.get(eqn.primitive.name)
    if rule is not None and (not subjaxprs(eqn) or _is_to_be_walked(eqn, inputs)):
        return rule
    if isinstance(eqn.primitive, Callback):
        return _call_back
    return _call if any(type(x) is CheckedBuffer for x in inputs) else _compute


def _is_to_be_walked(eqn: Equation, inputs: Values) -> bool:
    return any(type(x) in (CheckedBuffer, Twin) for x in inputs) or any(map(_has_checks, subjaxprs(eqn)))


@once
def _has_checks(jaxpr: Jaxpr) -> bool:
    """Whether a check, or a callback, is in the program."""
    return any(
        eqn.primitive is debug_check_p or isinstance(eqn.primitive, Callback) or any(map(_has_checks, subjaxprs(eqn)))
        for eqn in jaxpr.eqns
    )


def _compute(machine: Machine, eqn: Equation, inputs: Values) -> Sequence[Any]:
    floats = all(issubdtype(v.aval.dtype, np.floating) for v in eqn.outvars)
    if machine.params.skip_floating_point_ops and floats:
        return [np.full(v.aval.shape, np.inf, v.aval.dtype) for v in eqn.outvars]
    return on_both(lambda values: _bound(eqn, values), inputs)


def _bound(eqn: Equation, values: Values) -> Sequence[Any]:
    outs = eqn.primitive.bind(*values, **eqn.params)
    return outs if eqn.primitive.multiple_results else [outs]


def _call_back(machine: Machine, eqn: Equation, inputs: Values) -> Sequence[Any]:
    """A callback runs once, with the first content of undefined memory."""
    return _bound(eqn, [first(x) for x in inputs])


# --- equations on refs


def _get(machine: Machine, eqn: Equation, inputs: Values) -> Sequence[Any]:
    ref, *operands = inputs
    return [load(machine, ref, eqn.params["view"], operands)]


def _set(machine: Machine, eqn: Equation, inputs: Values) -> Sequence[Any]:
    ref, value, *operands = inputs
    store(machine, ref, eqn.params["view"], value, operands)
    return []


def _addupdate(machine: Machine, eqn: Equation, inputs: Values) -> Sequence[Any]:
    ref, term, *operands = inputs
    view = eqn.params["view"]
    now = load(machine, ref, view, operands)
    (total,) = on_both(lambda values: [host(values[0]) + host(values[1])], [now, term])
    store(machine, ref, view, total, operands)
    return []


def _check(machine: Machine, eqn: Equation, inputs: Values) -> Sequence[Any]:
    (condition,) = inputs
    message = eqn.params["message"]
    if type(condition) is Twin:
        machine.fail(None, f"debug_check({message!r}) depends on {_whence(condition)}; write that memory first")
    if not host(condition).all():
        machine.fail(None, f"debug_check failed: {message}")
    return []


# --- loops, branches and calls


def _whence(x: Twin) -> str:
    return min(map(str, x.origins), default="undefined memory")


def _defined(machine: Machine, x: Any, what: str) -> np.ndarray:
    """A value that decides what runs; an error if it is undefined."""
    if type(x) is Twin:
        ref = min((o.ref for o in x.origins), default=None)
        machine.fail(ref, f"{what} depends on {_whence(x)}; write that memory first")
    return host(x)


def _scan(machine: Machine, eqn: Equation, inputs: Values) -> Sequence[Any]:
    params, jaxpr = eqn.params, eqn.params["jaxpr"]
    first_x = params["num_consts"] + params["num_carry"]
    consts, state, xs = inputs[: params["num_consts"]], inputs[params["num_consts"] : first_x], inputs[first_x:]
    order = range(params["length"])
    rows: dict[int, list[Any]] = {}
    for i in reversed(order) if params["reverse"] else order:
        slices = [on_both(lambda values, i=i: [host(values[0])[i]], [x])[0] for x in xs]
        outs = walk(machine, jaxpr, [*consts, *state, *slices])
        state, rows[i] = outs[: params["num_carry"]], outs[params["num_carry"] :]
    stacked = [_stacked([rows[i][k] for i in order], v.aval) for k, v in enumerate(eqn.outvars[len(state) :])]
    return [*state, *stacked]


def _stacked(rows: Sequence[Any], aval: Any) -> Any:
    if not rows:
        return np.zeros(aval.shape, aval.dtype)
    return on_both(lambda values: [np.stack(list(map(host, values)))], rows)[0]


def _while(machine: Machine, eqn: Equation, inputs: Values) -> Sequence[Any]:
    params = eqn.params
    tests, every = params["cond_nconsts"], params["cond_nconsts"] + params["body_nconsts"]
    state = inputs[every:]
    while True:
        (goes_on,) = walk(machine, params["cond_jaxpr"], [*inputs[:tests], *state])
        if not _defined(machine, goes_on, "the condition of a loop").any():
            return state
        state = walk(machine, params["body_jaxpr"], [*inputs[tests:every], *state])


def _cond(machine: Machine, eqn: Equation, inputs: Values) -> Sequence[Any]:
    index, *operands = inputs
    branches = eqn.params["branches"]
    chosen = int(np.clip(_defined(machine, index, "the choice of a branch"), 0, len(branches) - 1))
    return walk(machine, branches[chosen], operands)


def _call(machine: Machine, eqn: Equation, inputs: Values) -> Sequence[Any]:
    """A call of one jaxpr."""
    inner = [jaxpr for jaxpr in subjaxprs(eqn) if len(jaxpr.invars) == len(inputs)]
    if not inner:
        machine.fail(None, f"{eqn.primitive.name} takes a ref, which the checking interpreter does not know")
    return walk(machine, inner[0], inputs)


RULES: dict[str, Rule] = {
    "get": _get, "set": _set, "addupdate": _addupdate, "debug_check": _check,
    "masked_load": masked_load, "masked_store": masked_store, "atomic": atomic, "atomic_cas": compare_and_swap,
    "start_copy": start_copy, "wait_copy": wait_copy, "semaphore_signal": signal, "semaphore_wait": wait,
    "scan": _scan, "while": _while, "cond": _cond, "jit": _call,
}  # fmt: skip
"""By the name of the primitive: its results, for equations with refs, undefined values or checks in them."""
