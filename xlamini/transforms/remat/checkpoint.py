"""checkpoint: a call whose inside is computed again on the way back instead of being kept.

The primitive is a call as `jit` is, up to the moment it is parted in two: then the first half runs as it stands, and
the second half makes its residuals again from the operands. The second half is marked `differentiated`, and lowers
behind a barrier, because XLA would otherwise see that it repeats the first half and keep its values after all.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core.edges import edge
from xlamini.core.effects import more_than_observing
from xlamini.core.jaxpr import Jaxpr
from xlamini.core.pytree import flatten_from_user
from xlamini.core.structure import structural_key
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.linearize import linearize
from xlamini.interpreters.partial_eval import partial_eval
from xlamini.transforms.arguments import ArgNames, avals_of, check_callable, check_values, name_of
from xlamini.transforms.call import Call
from xlamini.transforms.higher_order import chosen, given, inverse, merged, nonzero_of, with_zeros
from xlamini.transforms.remat.recompute import Policy, cut
from xlamini.transforms.statics import Names, Numbers, Selected, take_out
from xlamini.transforms.tracing import rebuilt, trace

MAX_KNOWN = 128


def checkpoint(
    fun: Callable[..., Any] | None = None,
    /,
    *,
    prevent_cse: bool = True,
    policy: Policy | None = None,
    static_argnums: Numbers = (),
    static_argnames: Names = (),
) -> Any:
    """A function like `fun` that, when differentiated, keeps its arguments and computes the rest again on the way back.

    `policy` says what is kept besides; see `checkpoint_policies`. Arguments in `static_argnums`/`static_argnames` are
    passed to Python as they are. With `prevent_cse=False` XLA may find out that it computes the same things twice and
    keep them; inside a loop, where it does not look, this is faster. `remat` is the same function. Usable as a
    decorator, with and without options.

    >>> xlamini.grad(checkpoint(lambda x: xlamini.numpy.sin(xlamini.numpy.sin(x))))(2.0)
    Array(-0.2556391, dtype=float32, weak_type=True)
    """
    if fun is None:
        options = {k: v for k, v in locals().items() if k != "fun"}
        return functools.partial(checkpoint, **options)
    check_callable("checkpoint", fun)
    static = Selected("static", fun, static_argnums, static_argnames, "checkpoint")
    options = {"prevent_cse": bool(prevent_cse), "differentiated": False, "policy": policy}
    known: dict[Any, Jaxpr] = {}

    @edge
    @functools.wraps(fun)
    def checkpointed(*args: Any, **kwargs: Any) -> Any:
        return _call(fun, static, options, known, args, kwargs)

    return checkpointed


def _call(
    fun: Callable[..., Any],
    static: Selected,
    options: dict[str, Any],
    known: dict[Any, Jaxpr],
    args: Sequence[Any],
    kwargs: dict[str, Any],
) -> Any:
    """Trace, and bind the primitive; on each call, since what `fun` closes over may have changed."""
    statics, dynamic, keywords = take_out(static, fun, args, kwargs)
    leaves, tree = flatten_from_user((tuple(dynamic), keywords))
    taken = {position for position, _ in statics.by_num}
    names = ArgNames(fun, tree, [i for i in range(len(args)) if i not in taken])
    avals = avals_of(leaves, names, name_of(fun), ", or mark it static with static_argnums or static_argnames")
    check_values(leaves, names, name_of(fun))

    def of_dynamic(*dynamic: Any, **keywords: Any) -> Any:
        full_args, full_kwargs = statics.restored(dynamic, keywords)
        return fun(*full_args, **full_kwargs)

    traced = trace(of_dynamic, tree, avals, None, names, name_of(fun))
    outs = checkpoint_p.bind(*traced.captured, *leaves, jaxpr=_same(known, traced.jaxpr), **options)
    return rebuilt(traced.out_tree, outs)


def _same(known: dict[Any, Jaxpr], jaxpr: Jaxpr) -> Jaxpr:
    """The jaxpr of an earlier trace that is equal to this one, so that each rewrite of it is made once."""
    if len(known) >= MAX_KNOWN:
        known.pop(next(iter(known)))
    return known.setdefault(structural_key(jaxpr), jaxpr)


class Checkpoint(Call):
    """A call that keeps no residuals of its inside, but for those that its policy lets be saved."""

    name = "remat2"

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any], *, jaxpr: Jaxpr, **params: Any) -> Any:
        _check_effects(jaxpr)
        lin = linearize(jaxpr, nonzero_of(tangents))
        parts = cut(lin.primal, lin.tangent, len(jaxpr.outvars), lin.sources, params["policy"])
        outs, kept = parts.parted(primals, self._first(parts.first, primals, params))
        out_tangents = self._second(parts.second, [*kept, *given(tangents)], params)
        return outs, with_zeros(jaxpr.out_avals, lin.nonzero_out, out_tangents)

    def partial_eval(self, unknown: Sequence[bool], operands: Sequence[Any], *, jaxpr: Jaxpr, **params: Any) -> Any:
        _check_effects(jaxpr)
        halves = partial_eval(jaxpr, tuple(unknown))
        count = len(jaxpr.outvars) - sum(halves.unknown_out)
        parts = cut(halves.known, halves.unknown, count, halves.sources, params["policy"])
        known = chosen(operands, inverse(unknown))
        outs, kept = parts.parted(known, self._first(parts.first, known, params))
        later = self._second(parts.second, [*kept, *chosen(operands, unknown)], params)
        return merged(halves.unknown_out, later, outs)

    def _first(self, jaxpr: Jaxpr, operands: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        """Run the first half, in the open unless it is itself a computation that is made again."""
        if params["differentiated"]:
            return self.bind(*operands, jaxpr=jaxpr, **params)
        return evaluate(jaxpr, operands)

    def _second(self, jaxpr: Jaxpr, operands: Sequence[Any], params: dict[str, Any]) -> list[Any]:
        return self.bind(*operands, jaxpr=jaxpr, **{**params, "differentiated": True})

    def lower(
        self, ctx: Any, *operands: Any, jaxpr: Jaxpr, prevent_cse: bool, differentiated: bool, policy: Any
    ) -> Any:
        if prevent_cse and differentiated and operands:
            operands = ctx.many("stablehlo.optimization_barrier", operands, [x.type for x in operands])
        return ctx.call(jaxpr, operands, jaxpr.name)

    def shown_params(self, params: dict[str, Any]) -> dict[str, Any]:
        return dict(sorted(params.items()))


checkpoint_p = Checkpoint()


def _check_effects(jaxpr: Jaxpr) -> None:
    effects = more_than_observing(jaxpr.effects)
    if effects:
        raise NotImplementedError(
            f"checkpoint: {jaxpr.name or 'the function'} has effects ({', '.join(map(repr, effects))}), which would "
            "happen again when it is computed again on the way back; move what has them out of the checkpointed function"
        )
