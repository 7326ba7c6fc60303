"""The public function `while_loop`: a loop whose trip count is decided at run time by a condition."""
from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, overload

import numpy as np

from xlamini.core import Cell, ConcretizationTypeError, disable_jit
from xlamini.core.program.avals import NOWHERE, Avals
from xlamini.core.program.named_axes import divergent_along
from xlamini.core.program.ref_types import WRITE
from xlamini.core.pytree import structure, treedef_is_leaf
from xlamini.core.tracing.body import BodyBuilder
from xlamini.core.wrapping import wraps
from xlamini.runtime import Array
from xlamini.staging import Cells, Trace, name_of, rebuilt, retry_with_refs, store, threaded, values_of
from xlamini.staging.trace.trace_cache import body_trace
from xlamini.staging.trace.tracing import trace
from xlamini.transforms.control_flow.carries import Carry, check_function, with_inputs_of
from xlamini.transforms.sharding.device_put import device_put
from xlamini.transforms.while_loop.max_steps import bounded_while_p
from xlamini.transforms.while_loop.primitive import while_p

T = TypeVar("T")


@overload
def while_loop(
    cond_fun: Callable[[Array], Any],
    body_fun: Callable[[Array], T],
    init_val: complex,
    *,
    max_steps: int | None = None,
) -> T: ...
@overload
def while_loop(
    cond_fun: Callable[[T], Any], body_fun: Callable[[T], T], init_val: T, *, max_steps: int | None = None
) -> T: ...
@overload
def while_loop(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], T], init_val: Any, *, max_steps: int | None = None
) -> T: ...
def while_loop(
    cond_fun: Callable[[Any], Any],
    body_fun: Callable[[Any], Any],
    init_val: Any,
    *,
    max_steps: int | None = None,
) -> Any:
    """The value that `init_val` becomes by `val = body_fun(val)`, repeated while `cond_fun(val)` is true.

    `cond_fun` returns one bool. `init_val` is an array, a number, or a container of them; `body_fun` returns the same
    structure, shapes and dtypes (else TypeError). A Python number takes the dtype that `body_fun` returns for it.

    The loop has derivatives in forward mode only: reverse mode needs the residuals of every iteration, and the trip
    count is unknown. With `max_steps=N` the loop stops after at most N iterations, as if `cond_fun` were false then
    (call `cond_fun` on the result to learn whether it was), and has derivatives in reverse mode too: these store about
    sqrt(N) carries, and recompute the body twice.

    Under vmap, if the condition depends on the batch, the loop runs until it is false for all examples; the carry of an
    example no longer changes once its condition is false.

    >>> while_loop(lambda x: x < 100, lambda x: 2 * x, 1)
    Array(128, dtype=int32, weak_type=True)
    >>> xlamini.grad(lambda x: while_loop(lambda y: y < 10, lambda y: y * x, x, max_steps=5))(3.0)
    Array(27., dtype=float32, weak_type=True)
    """
    check_function("while_loop", "cond_fun", cond_fun)
    check_function("while_loop", "body_fun", body_fun)
    _check_steps(max_steps)
    return retry_with_refs(_while_loop, _threading, cond_fun, body_fun, init_val, max_steps)


def _threading(cells: Cells, cond_fun: Callable, body_fun: Callable, init_val: Any, max_steps: int | None) -> Any:
    """The loop with the refs that its functions read or write as part of the carry."""

    @wraps(cond_fun)
    def holds(state: Any) -> Any:
        found, values = threaded(cond_fun, cells)(*state)
        if any(type(c) is Cell and new is not old for c, old, new in zip(cells, state[0], values, strict=True)):
            raise _write_in_condition(name_of(cond_fun))
        return found

    @wraps(body_fun)
    def iteration(state: Any) -> Any:
        val, values = threaded(body_fun, cells)(*state)
        return values, val

    values, last = _while_loop(holds, iteration, (values_of(cells), init_val), max_steps)
    store(cells, values)
    return last


def _while_loop(cond_fun: Callable, body_fun: Callable, init_val: Any, max_steps: int | None) -> Any:
    if disable_jit.value:
        try:
            return _in_python(cond_fun, body_fun, init_val, max_steps)
        except ConcretizationTypeError:  # the condition is a tracer: the loop must be traced after all
            pass
    carry = Carry("while_loop", body_fun, init_val, "init_val")
    init, cond, body = _traced(carry, cond_fun, body_fun, structure(((init_val,), {})))
    primitive, limit = (while_p, {}) if max_steps is None else (bounded_while_p, {"max_steps": int(max_steps)})
    outs = primitive.bind(
        *cond.captured,
        *body.captured,
        *init,
        body_jaxpr=body.jaxpr,
        body_nconsts=len(body.captured),
        cond_jaxpr=cond.jaxpr,
        cond_nconsts=len(cond.captured),
        **limit,
    )
    return rebuilt(carry.tree, outs)


def _traced(
    carry: Carry, cond_fun: Callable, body_fun: Callable, in_tree: Any, axes: frozenset[Any] = NOWHERE
) -> tuple[list[Any], Trace, Trace]:
    """The initial carry, and the traces of condition and body, which devices run unequally often along these axes."""
    with divergent_along(axes):
        init, body, avals = carry.trace_body(functools.partial(_trace, body_fun, in_tree))
        cond = _trace(cond_fun, in_tree, avals)
    _check_predicate(cond, name_of(cond_fun))
    if WRITE in cond.jaxpr.effects:
        raise _write_in_condition(name_of(cond_fun))
    first, types = len(cond.captured), tuple(body.jaxpr.in_avals[len(body.captured) :])
    cond = cond._replace(jaxpr=with_inputs_of(cond.jaxpr, first, types))
    found = cond.jaxpr.out_avals[0].vma
    return (init, cond, body) if found <= axes else _traced(carry, cond_fun, body_fun, in_tree, axes | found)


def _trace(fun: Callable, in_tree: Any, avals: Avals) -> Trace:
    anew = functools.partial(trace, fun, in_tree, avals, reuse_equal=True, kind=BodyBuilder)
    return body_trace("while_loop", fun, in_tree, avals, anew)


def _check_steps(max_steps: Any) -> None:
    """TypeError or ValueError unless `max_steps` is None or an int within its bounds."""
    if max_steps is None:
        return
    is_int = isinstance(max_steps, int | np.integer)
    if not is_int or not 0 <= max_steps < 2**31:
        raise (ValueError if is_int else TypeError)(
            f"while_loop: max_steps must be None or an int from 0 to 2**31 - 1, got {max_steps!r} of type "
            f"{type(max_steps).__name__}; it must be known when the loop is traced, because it fixes how many carries "
            "reverse mode stores"
        )


def _write_in_condition(name: str) -> TypeError:
    return TypeError(f"while_loop: cond_fun {name} writes a ref, but a condition only reads; write it in body_fun")


def _check_predicate(cond: Trace, name: str) -> None:
    if not treedef_is_leaf(cond.out_tree) or len(cond.jaxpr.outvars) != 1:
        raise TypeError(
            f"while_loop: cond_fun {name} must return one bool, but returned the structure {cond.out_tree}; "
            "combine its parts with & or |"
        )
    (aval,) = cond.jaxpr.out_avals
    if (aval.shape, aval.dtype) != ((), np.bool_):
        fix = "compare it with something" if aval.dtype != np.bool_ else "reduce it with jnp.all or jnp.any"
        raise TypeError(
            f"while_loop: cond_fun {name} must return one bool, bool[], but returned "
            f"{aval.str_short(short_dtypes=False)}; {fix}"
        )


def _in_python(cond_fun: Callable, body_fun: Callable, init_val: Any, max_steps: int | None) -> Any:
    value, steps = device_put(init_val), 0
    while cond_fun(value) and (max_steps is None or steps < max_steps):
        value, steps = body_fun(value), steps + 1
    return value
