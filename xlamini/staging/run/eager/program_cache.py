"""The program cache: eager transformations run as one program, looked up by its structure.

`grad(f)(x)` outside jit traces and rewrites on every call, but compiles only programs of a new structure. A program
that Python control flow produces only once is not worth compiling: the first time, it runs operation by operation if
most of its operations are compiled already. A large one, such as the path of an adaptive solver, runs so until that
has taken as long as it is estimated to compile; so the total is at most about twice that of the better choice.
"""
from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple

from xlamini.core import (
    CallLike,
    Jaxpr,
    Literal,
    Params,
    Primitive,
    ShapedArray,
    Values,
    Var,
    aval_of,
    close_over,
    float0,
    once,
    rewrite,
)
from xlamini.core.caching.memo import Memo
from xlamini.core.caching.structure import executable_key, executable_params, hashable
from xlamini.core.errors import JAXTypeError
from xlamini.core.flags.compile_flags import compile_key
from xlamini.core.flags.jax_flags import debug_infs, debug_key_reuse, debug_nans
from xlamini.core.program.hi_types import raised
from xlamini.core.program.jaxpr import is_expanded
from xlamini.core.program.memory_space import DEVICE
from xlamini.core.tracing.state import state
from xlamini.core.tracing.tracer import build
from xlamini.interpreters.evaluate import evaluate
from xlamini.primitives import convert
from xlamini.runtime import device_put_value
from xlamini.staging.compile.compile_request import CompileRequest
from xlamini.staging.compile.pipeline import in_arrays, needed
from xlamini.staging.compile.placement import placement, requested_by
from xlamini.staging.compile.program import Program, compile_lowered
from xlamini.staging.run.jit.lift_literals import lift_literals
from xlamini.staging.run.programs import ProgramKey, find, find_or_make, shared
from xlamini.staging.trace.trace_cache import is_traced_once


class Routed(NamedTuple):
    """A program that computes each output once, and where the outputs asked for come from.

    `routes[i]` is an output's number, or `~k` for input k.
    """

    jaxpr: Jaxpr
    routes: tuple[int, ...]


equations: Final = Memo("program: equations with jaxprs", 2048)
met: Final = Memo("program: hashes of programs met", 2048, counted=False)
"""The milliseconds that each program has run operation by operation. By hash, since a key is as long as its program."""


def apply(jaxpr: Jaxpr, operands: Values) -> list[Any]:
    """A jaxpr's outputs: its equations join the program being traced, or it runs as one program.

    Operands may differ in weak type from the jaxpr's inputs, as tangents do that a user gave.
    """
    if state.builder is None:
        return run(close_over(jaxpr), [*jaxpr.consts, *operands])
    typed = [convert(x, v.aval.dtype, v.aval.weak_type) for x, v in zip(operands, jaxpr.invars, strict=True)]
    return evaluate(jaxpr, typed)


def as_one_program(fun: Callable[..., Sequence[Any]], operands: Values, name: str = "") -> list[Any]:
    """`fun(*operands)`, flat: inlined when tracing, else traced and run as one program."""
    if state.builder is not None:
        return list(fun(*operands))
    jaxpr, captured = build(fun, [aval_of(x) for x in operands], name)
    return run(close_over(jaxpr), [*captured, *operands])


def transformed(
    program: Callable[..., Sequence[Any]], jaxpr: Jaxpr, options: tuple[Any, ...], operands: Values, name: str = ""
) -> list[Any]:
    """`program(jaxpr, *options, operands)`, flat: inlined when tracing, else run as one program, called like the jaxpr.

    `program` looks at nothing but its arguments, so it is made into a jaxpr once for each jaxpr, options and types.
    """
    if is_traced_once():
        return list(program(jaxpr, *options, operands))
    whole = transformed_jaxpr(jaxpr, program, options, tuple(map(aval_of, operands)), name or jaxpr.name)
    if state.builder is not None:
        return evaluate(whole, operands)
    return run(close_over(whole), [*whole.consts, *operands])


@rewrite
def transformed_jaxpr(
    jaxpr: Jaxpr,
    program: Callable[..., Sequence[Any]],
    options: tuple[Any, ...],
    avals: tuple[ShapedArray, ...],
    name: str,
) -> Jaxpr:
    """The jaxpr of `program(jaxpr, *options, operands)`, for operands of these types."""
    return build(lambda *operands: program(jaxpr, *options, operands), avals, name)[0]


def run_equation(primitive: Primitive, operands: Values, params: Params) -> list[Any]:
    """Run one higher-order equation now; equal equations share the program around it."""
    avals = tuple(map(aval_of, operands))
    key = primitive, executable_params(params), avals

    def equation(*tracers: Any) -> Values:
        return primitive.bind(*tracers, **params)

    return run(equations.get_or_make(key, lambda: build(equation, avals, primitive.name)[0]), operands)


def run(jaxpr: Jaxpr, inputs: Values) -> list[Any]:
    """Run a jaxpr now; an output that is an input is returned without a copy."""
    if debug_nans.value or debug_infs.value:
        from xlamini.staging.run.diagnostics.bad_values import run_and_look  # for those who look only

        return run_and_look(run, jaxpr, inputs, _NUMBERED)
    if not is_expanded(jaxpr):
        return _run_expanded(jaxpr, inputs)
    if debug_key_reuse.value:
        from xlamini.staging.compile.key_reuse import run_on_keys  # for those who look only

        return list(run_on_keys(jaxpr.name, jaxpr, inputs, lambda: _outputs(jaxpr, inputs)))
    return _outputs(jaxpr, inputs)


def _outputs(jaxpr: Jaxpr, inputs: Values) -> list[Any]:
    found = _one_by_one(jaxpr, inputs) if _is_eager(jaxpr) else _by_routes(_routed(jaxpr), inputs)
    return [_as_array(x, aval) for x, aval in zip(found, jaxpr.out_avals, strict=True)]


@once
def _is_eager(jaxpr: Jaxpr) -> bool:
    """Whether it has a primitive that only Python can run, so that no program can be compiled of it."""
    return any(eqn.primitive.eager_only for eqn in jaxpr.eqns)


def _run_expanded(jaxpr: Jaxpr, inputs: Values) -> list[Any]:
    """The results; equation by equation if an expand rule reads values, as it may where nothing is traced."""
    try:
        whole, arrays = in_arrays(jaxpr, inputs)
    except JAXTypeError:
        if not any(eqn.primitive.expands for eqn in jaxpr.eqns):
            raise
        return _one_by_one(jaxpr, inputs)
    outs = run(whole, arrays)
    return raised(jaxpr.out_avals, outs)


def _one_by_one(jaxpr: Jaxpr, inputs: Values) -> list[Any]:
    """The results, equation by equation."""
    return evaluate(needed(jaxpr, keep_unused=True).jaxpr, inputs)


def _by_routes(routed: Routed, inputs: Values) -> list[Any]:
    outs = _run(routed.jaxpr, inputs) if routed.jaxpr.outvars or routed.jaxpr.effects else []
    return [outs[r] if r >= 0 else inputs[~r] for r in routed.routes]


def _as_array(x: Any, aval: ShapedArray) -> Any:
    """A result as an array of its type, even if the program returns a literal or the caller's ndarray."""
    if type(x) is Literal:
        return device_put_value(x.val, aval=aval)
    if aval.dtype == float0:
        return x
    found = getattr(x, "aval", None)
    return x if found is not None and found.weak_type == aval.weak_type else device_put_value(x, aval=aval)


def _run(jaxpr: Jaxpr, inputs: Values) -> list[Any]:
    where = placement(inputs, _NUMBERED, jaxpr.name, requested_by(jaxpr))
    key = ProgramKey(executable_key(jaxpr), where.device, compile_key())
    program, numbers = find(shared, key), ()
    if program is None:
        program, numbers = _found_or_made(jaxpr, key)
    if program is None:
        return _timed(jaxpr, key, inputs)
    return program([*inputs, *numbers], where.committed)


def _timed(jaxpr: Jaxpr, key: ProgramKey, inputs: Values) -> list[Any]:
    """The outputs, operation by operation; the time is added to the program's entry in `met`."""
    start = time.thread_time()
    outs = _one_by_one(jaxpr, inputs)
    spent = 1000 * (time.thread_time() - start)
    for known in (hash(key), hash(key._replace(structure=executable_key(lift_literals(jaxpr)[0])))):
        met.keep(known, met.table.get(known, 0.0) + spent)
    return outs


def _found_or_made(jaxpr: Jaxpr, key: ProgramKey) -> tuple[Program | None, Sequence[Any]]:
    """The program, and numbers that it takes as further inputs; None where single operations serve better this time.

    The first one of its structure has its numbers as constants. When others come there is one that takes any numbers.
    """
    general, numbers = lift_literals(jaxpr)
    general_key = key._replace(structure=executable_key(general))
    spent, spent_alike = met.table.get(hash(key)), met.table.get(hash(general_key))
    if numbers and (program := find(shared, general_key)) is not None:
        return program, numbers
    if numbers and spent is None and spent_alike is not None and not _better_again(jaxpr, spent_alike):
        return _compiled(general, general_key), numbers
    met.keep(hash(key), spent or 0.0)
    met.keep(hash(general_key), spent_alike or 0.0)
    one_by_one = _better_one_by_one(jaxpr) if spent is None else _better_again(jaxpr, spent)
    return (None if one_by_one else _compiled(jaxpr, key)), ()


def _compiled(jaxpr: Jaxpr, key: ProgramKey) -> Program:
    return find_or_make(
        shared, key, jaxpr.name, lambda: compile_lowered(CompileRequest(jaxpr, jaxpr.name, key.device))
    )


class _Numbered:
    def __getitem__(self, index: int) -> str:
        return f"input {index}"


_NUMBERED: Any = _Numbered()


# Milliseconds on a laptop CPU: a program's compile time, an equation's share of it, one operation's compile time.
_PROGRAM_MS, _EQUATION_MS, _OPERATION_MS = 15.0, 1.0, 10.0

_LARGE_MS = 250.0
"""A program that compiles faster is compiled when it comes again: the delay is hardly noticed."""


def _better_one_by_one(jaxpr: Jaxpr) -> bool:
    """Whether running this program once costs less equation by equation than compiled whole."""
    new = set()
    if any(v.aval.memory_space is not DEVICE for v in jaxpr.invars):
        return False  # constants are in no memory only inside a program
    for eqn in jaxpr.eqns:
        if eqn.primitive.higher_order and not isinstance(eqn.primitive, CallLike):
            return False  # a loop or a choice is a program of its own, which would be compiled a second time
        if eqn.kind is not None and eqn.kind.sharding_conflict is not None:
            return False  # run by itself, it would be reported as if the user had written it
        params = hashable(tuple(eqn.params.items()))
        if params not in eqn.primitive.executables:
            new.add((eqn.primitive, params))
    return len(new) * _OPERATION_MS < _compile_ms(jaxpr)


def _compile_ms(jaxpr: Jaxpr) -> float:
    """An estimate of the program's compile time."""
    return _PROGRAM_MS + len(jaxpr.eqns) * _EQUATION_MS


def _better_again(jaxpr: Jaxpr, spent: float) -> bool:
    """Whether a large program that has run operation by operation for `spent` milliseconds should do so once more."""
    estimate = _compile_ms(jaxpr)
    return spent < estimate > _LARGE_MS and _better_one_by_one(jaxpr)


@once
def _routed(jaxpr: Jaxpr) -> Routed:
    inputs = {v: ~i for i, v in enumerate(jaxpr.invars)}
    numbers: dict[Var, int] = {}
    outvars, routes = [], []
    for atom in jaxpr.outvars:
        number = inputs.get(atom, numbers.get(atom)) if isinstance(atom, Var) else None
        if number is None:
            number = len(outvars)
            outvars.append(atom)
            if isinstance(atom, Var):
                numbers[atom] = number
        routes.append(number)
    return Routed(jaxpr.replace(outvars=outvars), tuple(routes))
