"""checkpoint: a call whose residuals are recomputed in the backward pass instead of being stored.

The primitive is a call like `jit` until linearize or partial evaluation splits it. Then the first program runs inline,
and the second one recomputes its residuals from the operands. The second program is marked `differentiated` and lowers
behind an optimization barrier; otherwise XLA's common-subexpression elimination would find that it repeats the first
program, and store the values after all.
"""
from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, ParamSpec, TypedDict, TypeVar, Unpack, overload

from xlamini.core import Jaxpr, Params, Values, example_of, flatten, flatten_call, is_linear
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.core.flags.jax_flags import log_checkpoint_residuals
from xlamini.core.program.checks import Checks
from xlamini.core.program.effects import more_than_observing
from xlamini.core.program.key_uses import KeyUses
from xlamini.core.pytree.prefix import broadcast_prefix
from xlamini.core.wrapping import wraps
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.linearize import linearize
from xlamini.interpreters.partial_eval import partial_eval
from xlamini.staging import (
    ArgNames,
    Cells,
    Mask,
    check_callable,
    checked_avals,
    chosen,
    given,
    inverse,
    merged,
    name_of,
    nonzero_of,
    rebuilt,
    retry_with_refs,
    store,
    threaded,
    values_of,
    with_zeros,
)
from xlamini.staging.call.call import Call
from xlamini.staging.call.higher_order import key_uses_inside
from xlamini.staging.trace.static_args import Names, Numbers, Selected, take_out
from xlamini.staging.trace.trace_cache import equal_in_trace
from xlamini.staging.trace.tracing import trace
from xlamini.transforms.remat.policies import Policy, check_policy
from xlamini.transforms.remat.recompute import ForwardAndRecompute, cut

P = ParamSpec("P")
R = TypeVar("R")


class CheckpointOptions(TypedDict, total=False):
    """The keyword arguments of `checkpoint`."""

    prevent_cse: bool | Sequence[Any]
    policy: Policy | None
    static_argnums: Numbers
    static_argnames: Names
    concrete: bool


class RematOptions(NamedTuple):
    """The options of a `checkpoint` call, checked."""

    static: Selected
    prevent_cse: Any
    policy: Policy | None


@overload
def checkpoint(fun: Callable[P, R], **options: Unpack[CheckpointOptions]) -> Callable[P, R]: ...
@overload
def checkpoint(
    fun: None = None, **options: Unpack[CheckpointOptions]
) -> Callable[[Callable[P, R]], Callable[P, R]]: ...
def checkpoint(
    fun: Callable[..., Any] | None = None,
    *,
    prevent_cse: bool | Sequence[Any] = True,
    policy: Policy | None = None,
    static_argnums: Numbers = (),
    static_argnames: Names = (),
    concrete: bool = False,
) -> Any:
    """A function like `fun` whose derivative stores only its arguments, and recomputes the rest in the backward pass.

    `policy` selects further values to store; see `checkpoint_policies`. Arguments in `static_argnums`/`static_argnames`
    are passed to Python unchanged; they need no hash. With `prevent_cse=False` there is no optimization barrier, so
    that XLA may eliminate the recomputation; inside a loop, where it cannot, this is faster. `prevent_cse` may also be
    a tuple with one entry for each argument that is not static: a bool, or a container of bools like the argument.
    `concrete=True`, which JAX has given up too, raises NotImplementedError. `remat` is an alias. Usable as a decorator,
    with and without options.

    >>> xlamini.grad(checkpoint(lambda x: xlamini.numpy.sin(xlamini.numpy.sin(x))))(2.0)
    Array(-0.25563914, dtype=float32, weak_type=True)
    """
    if fun is None:
        options = {k: v for k, v in locals().items() if k != "fun"}
        return functools.partial(checkpoint, **options)
    check_callable("checkpoint", fun)
    if concrete:
        raise NotImplementedError("checkpoint: concrete must be False; name static arguments in static_argnums instead")
    static = Selected("static", fun, static_argnums, static_argnames, "checkpoint")
    if policy is not None:
        check_policy("checkpoint", policy)
    checked = RematOptions(static, prevent_cse, policy)

    @api_boundary
    @wraps(fun)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        return retry_with_refs(_call, _threading, fun, checked, args, kwargs)

    return checkpointed


def _threading(
    cells: Cells, fun: Callable[..., Any], options: RematOptions, args: Values, kwargs: dict[str, Any]
) -> Any:
    """The call with the refs that `fun` reads or writes threaded through it as values."""
    guards = options.prevent_cse if isinstance(options.prevent_cse, bool) else (True, *options.prevent_cse)
    shifted = options._replace(static=options.static.shifted(), prevent_cse=guards)
    out, values = _call(threaded(fun, cells), shifted, (values_of(cells), *args), kwargs)
    store(cells, values)
    return out


def _call(fun: Callable[..., Any], options: RematOptions, args: Values, kwargs: dict[str, Any]) -> Any:
    """Trace `fun` and bind the primitive; every call traces, because the closure of `fun` may have changed."""
    statics, dynamic, keywords = take_out(options.static, args, kwargs)
    leaves, tree = flatten_call((tuple(dynamic), keywords))
    taken = {position for position, _ in statics.by_num}
    names = ArgNames(fun, tree, [i for i in range(len(args)) if i not in taken])
    avals = checked_avals(leaves, names, name_of(fun), ", or mark it static with static_argnames or static_argnums")
    guards = _guards(options.prevent_cse, tree)

    def of_dynamic(*dynamic: Any, **keywords: Any) -> Any:
        full_args, full_kwargs = statics.restored(dynamic, keywords)
        return fun(*full_args, **full_kwargs)

    traced = trace(of_dynamic, tree, avals, None, names, name_of(fun))
    outs = checkpoint_p.bind(
        *traced.captured,
        *leaves,
        jaxpr=equal_in_trace(traced.jaxpr),
        differentiated=False,
        policy=options.policy,
        prevent_cse=_uniform([True] * len(traced.captured) + guards),
    )
    return rebuilt(traced.out_tree, outs)


def _guards(prevent_cse: Any, tree: Any) -> list[bool]:
    """`prevent_cse` for each leaf of `(args, kwargs)`."""
    if isinstance(prevent_cse, bool):
        return [prevent_cse] * tree.num_leaves
    args, kwargs = example_of(tree)
    guards = broadcast_prefix(prevent_cse, args, names=("prevent_cse", "args"), caller="checkpoint")
    wrong = next((x for x in guards if not isinstance(x, bool)), None)
    if wrong is not None:
        raise TypeError(
            "checkpoint: prevent_cse must be a bool, or a tuple with a bool, or a container of bools, for each "
            f"argument; got {wrong!r} of type {type(wrong).__name__}"
        )
    return guards + [True] * len(flatten(kwargs)[0])


def _uniform(guards: Sequence[bool]) -> bool | Mask:
    """A single bool if all operands have the same one, else a mask."""
    return tuple(guards) if len(set(guards)) == 2 else all(guards)


remat = checkpoint


def _key_uses(eqn: Any) -> KeyUses:
    """What is computed again draws the same numbers on purpose."""
    uses = key_uses_inside(eqn)
    return KeyUses(reuses=uses.reuses) if eqn.params["differentiated"] else uses


class Checkpoint(Call):
    """A call that stores no residuals except those that its policy allows.

    `prevent_cse`, one bool or a mask of the operands, selects the operands that pass the optimization barrier.
    """

    name = "remat2"
    checks: Checks = Checks(key_uses=_key_uses)
    shares_names = False

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        guards = [*_each(params, primals), *(True for _ in given(tangents))]
        return super().jvp(primals, tangents, **_with(params, guards))

    def recomputes(self, params: Params) -> bool:
        return params["differentiated"]

    def transpose(self, cts: Values, *operands: Any, **params: Any) -> Values:
        known = [not is_linear(x) for x in operands]
        guards = [*chosen(_each(params, operands), known), *(True for _ in given(cts))]
        return super().transpose(cts, *operands, **_with(params, guards))

    def lower(
        self, ctx: Any, *operands: Any, jaxpr: Jaxpr, prevent_cse: bool | Mask, differentiated: bool, **_: Any
    ) -> Any:
        guards = _each({"prevent_cse": differentiated and prevent_cse}, operands)
        guarded = chosen(operands, guards)
        if guarded:
            held = ctx.many("stablehlo.optimization_barrier", guarded, [x.type for x in guarded])
            operands = tuple(merged(guards, held, chosen(operands, inverse(guards))))
        return ctx.call(jaxpr, operands, jaxpr.name)

    def linearize(self, primals: Values, tangents: Values, *, jaxpr: Jaxpr, **params: Any) -> Any:
        _check_effects(jaxpr)
        lin = linearize(jaxpr, nonzero_of(tangents))
        parts = cut(lin.primal, lin.tangent, len(jaxpr.outvars), lin.sources, params["policy"])
        outs, out_tangents = self._in_two(parts, primals, given(tangents), params)
        return outs, with_zeros(jaxpr.out_avals, lin.nonzero_out, out_tangents)

    def partial_eval(self, unknown: Sequence[bool], operands: Values, *, jaxpr: Jaxpr, **params: Any) -> Any:
        _check_effects(jaxpr)
        halves = partial_eval(jaxpr, tuple(unknown))
        count = len(jaxpr.outvars) - sum(halves.unknown_out)
        parts = cut(halves.known, halves.unknown, count, halves.sources, params["policy"])
        known = inverse(unknown)
        of_known = _with(params, chosen(_each(params, operands), known))
        outs, later = self._in_two(parts, chosen(operands, known), chosen(operands, unknown), of_known)
        return merged(halves.unknown_out, later, outs)

    def dce(self, used: Sequence[bool], params: Params) -> Any:
        ins, outs, slim = super().dce(used, params)
        return ins, outs, _with(slim, chosen(_each(params, ins), ins))

    def with_captured(self, operands: Values, params: Params) -> Any:
        every, closed = super().with_captured(operands, params)
        return every, _with(closed, [True] * (len(every) - len(operands)) + _each(params, operands))

    def shown_params(self, params: Params) -> Params:
        return dict(sorted(params.items()))

    def _in_two(
        self, parts: ForwardAndRecompute, known: Sequence[Any], own: Sequence[Any], params: Params
    ) -> tuple[list[Any], list[Any]]:
        """The outputs of both programs. The first one runs inline unless it is a recomputation itself."""
        if log_checkpoint_residuals.value:
            _log(parts)
        if params["differentiated"]:
            results = self.bind(*known, jaxpr=parts.first, **params)
        else:
            results = evaluate(parts.first, known)
        outs, stored = parts.outs_and_stored(known, results)
        places = parts.sources[parts.saved :]
        guards = _each(params, known)
        second_guards = [True] * parts.saved + [guards[i] for i in places] + [True] * len(own)
        second = {**_with(params, second_guards), "differentiated": True}
        return outs, self.bind(*stored, *own, jaxpr=parts.second, **second)


checkpoint_p: Final = Checkpoint()


def _log(parts: ForwardAndRecompute) -> None:
    """Log what a checkpoint stores for the backward pass: values that it computed, and its inputs."""
    types = [aval.str_short() for aval in parts.second.in_avals[: len(parts.sources)]]
    computed, inputs = types[: parts.saved], types[parts.saved :]
    logging.getLogger("xlamini").warning(
        "checkpoint of %s stores computed values [%s] and inputs [%s]",
        parts.first.name, ", ".join(computed), ", ".join(inputs),
    )  # fmt: skip


def _each(params: Params, operands: Values) -> list[bool]:
    """`prevent_cse` as one bool for each operand."""
    guards = params["prevent_cse"]
    return list(guards) if isinstance(guards, tuple) else [guards] * len(operands)


def _with(params: Params, guards: Sequence[bool]) -> dict[str, Any]:
    """The params for operands with these guards."""
    return {**params, "prevent_cse": _uniform(guards)} if isinstance(params["prevent_cse"], tuple) else params


def _check_effects(jaxpr: Jaxpr) -> None:
    effects = more_than_observing(jaxpr.effects)
    if effects:
        raise NotImplementedError(
            f"checkpoint: {jaxpr.name or 'the function'} has effects ({', '.join(map(repr, effects))}), which would "
            "be repeated when the backward pass recomputes it; move the effects out of it"
        )
