"""custom_vmap: a function with a batching rule that the user writes."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core.avals import ShapedArray
from xlamini.core.edges import edge_methods
from xlamini.core.jaxpr import Jaxpr, close_over
from xlamini.core.primitive import Axis
from xlamini.core.pytree import structure, treedef_children, unflatten
from xlamini.core.tangents import is_linear
from xlamini.core.tracer import state
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.jvp import jvp
from xlamini.interpreters.linearize import linearize
from xlamini.interpreters.transpose import transpose
from xlamini.primitives.batch_ops import move_batch_dim
from xlamini.transforms.arguments import check_callable, name_of
from xlamini.transforms.custom.rules import (
    captured_names,
    closed_over,
    halves,
    positional,
    signature_of,
    traced_call,
    with_ignored,
)
from xlamini.transforms.custom.vmap_rule import Further, PushedVmap, UserVmap, VmapRule
from xlamini.transforms.higher_order import (
    HigherOrder,
    chosen,
    given,
    inverse,
    nonzero_of,
    with_none,
    with_zeros,
)
from xlamini.transforms.tracing import rebuilt


class custom_vmap:
    """A function whose batching is given by a rule, set with `def_vmap`. A decorator.

    Forward mode keeps the rule, for the tangents too; reverse mode is that of the function itself, without it.
    Arguments are arrays, numbers, or containers of them; keyword arguments are put in their places. Values that the
    function or the rule closes over must not be mapped.

    >>> @custom_vmap
    ... def f(x, y):
    ...     return x + y
    >>> @f.def_vmap
    ... def f_vmap_rule(axis_size, in_batched, x, y):
    ...     return x + y, any(in_batched)
    >>> xlamini.vmap(f, in_axes=(0, None))(xlamini.numpy.ones(3), 1.0)
    Array([2., 2., 2.], dtype=float32)
    """

    def __init__(self, fun: Callable[..., Any]):
        check_callable("custom_vmap", fun)
        functools.update_wrapper(self, fun)
        self.fun = fun
        self.vmap_rule: Callable[..., tuple[Any, Any]] | None = None

    def def_vmap(self, vmap_rule: Callable[..., tuple[Any, Any]]) -> Callable[..., tuple[Any, Any]]:
        """Set the rule `vmap_rule(axis_size, in_batched, *args) -> (output, out_batched)`; returns it. A decorator.

        `in_batched` has for each argument a bool, or a tree of them: whether it has the mapped axis, which is then its
        first. `out_batched` says the same of the output, and has its structure. The rule is checked when the function
        is first mapped: ValueError unless it returns such a pair, of the shapes and dtypes that a map would give.
        """
        check_callable("custom_vmap: def_vmap", vmap_rule)
        self.vmap_rule = vmap_rule
        return vmap_rule

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = name_of(self.fun)
        if self.vmap_rule is None:
            raise AttributeError(
                f"custom_vmap: {name} has no rule yet; set one before it is called, with {name}.def_vmap(rule)"
            )
        every = positional("custom_vmap", name, self._signature, args, kwargs)
        return self.fun(*every) if state.builder is None else self._staged(every)

    @functools.cached_property
    def _signature(self) -> inspect.Signature | None:
        return signature_of(self.fun)

    def _staged(self, args: Sequence[Any]) -> Any:
        """The call as an equation of the program being traced."""
        assert self.vmap_rule is not None
        call = traced_call("custom_vmap", self.fun, (), args)
        jaxpr, captured, closed = call.traced.jaxpr, call.traced.captured, closed_over(self.vmap_rule)
        hidden = [*captured, *closed]
        outs = custom_vmap_call_p.bind(
            *hidden,
            *call.leaves,
            call=with_ignored(jaxpr, len(captured), [x.aval for x in closed]),
            captured=(*captured_names(self.fun, captured), *captured_names(self.vmap_rule, closed)),
            in_tree=structure(([0] * len(hidden), unflatten(call.in_tree, call.leaves)[0])),
            out_tree=call.traced.out_tree,
            rule=UserVmap(self.vmap_rule, call, len(captured), closed),
        )
        return rebuilt(call.traced.out_tree, outs)


edge_methods(custom_vmap)


class CustomVmapCall(HigherOrder):
    """A call that is batched by the user's rule.

    The first operands are values that the function and its rule captured, named in `captured`.
    """

    name = "custom_vmap_call"
    called = "call"

    def shape_rule(self, *avals: ShapedArray, call: Jaxpr, **params: Any) -> list[ShapedArray]:
        return call.out_avals

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, call: Jaxpr, rule: VmapRule, **params: Any
    ) -> Any:
        """The call of the function with its tangents, batched by the user's rule with its tangents."""
        nonzero = nonzero_of(tangents)
        pushed, nonzero_out = jvp(call, nonzero)
        if any(nonzero[: len(params["captured"])]):  # the rule knows no tangents of these
            outs = evaluate(pushed, [*primals, *given(tangents)])
        else:
            trees = {
                "in_tree": _with_tangents(params["in_tree"], given(tangents)),
                "out_tree": structure((unflatten(params["out_tree"], call.outvars), chosen(call.outvars, nonzero_out))),
            }
            ruled = {"call": pushed, "rule": PushedVmap(rule, nonzero, nonzero_out)}
            outs = self.bind(*primals, *given(tangents), **{**params, **ruled, **trees})
        count = len(call.outvars)
        return outs[:count], with_zeros(call.out_avals, nonzero_out, outs[count:])

    def transpose(self, cts: Sequence[Any], *operands: Any, call: Jaxpr, **params: Any) -> list[Any]:
        linear = tuple(is_linear(x) for x in operands)
        backward, nonzero_out = transpose(call, linear, nonzero_of(cts))
        outs = evaluate(backward, [*chosen(operands, inverse(linear)), *given(cts)])
        return with_none(linear, with_none(nonzero_out, outs))

    def batch(
        self, axis: Axis, operands: Sequence[Any], dims: Sequence[int | None], *, rule: VmapRule, **params: Any
    ) -> Any:
        _check_captured(dims, rule, params["captured"])
        first = [x if d is None else move_batch_dim(x, axis.size, d, 0) for x, d in zip(operands, dims, strict=True)]
        ruled = rule.traced(axis, tuple(d is not None for d in dims))
        outs = evaluate(ruled.jaxpr, first)
        return outs, [0 if b else None for b in ruled.out_batched]

    def lower(self, ctx: Any, *operands: Any, call: Jaxpr, **params: Any) -> Any:
        return ctx.body(call, operands, call.name)

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any], *, call: Jaxpr, **params: Any) -> Any:
        lin = linearize(call, nonzero_of(tangents))
        outs, residuals = lin.parted(primals, evaluate(lin.primal, primals))
        out_tangents = evaluate(lin.tangent, [*residuals, *given(tangents)])
        return outs, with_zeros(call.out_avals, lin.nonzero_out, out_tangents)

    def partial_eval(self, unknown: Sequence[bool], operands: Sequence[Any], **params: Any) -> Any:
        """In the open, without the rule, if that makes some outputs known."""
        found = halves(params["call"], unknown, operands)
        return self.bind(*operands, **params) if found is None else found

    def with_captured(self, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        jaxpr = params["call"]
        consts, inputs = treedef_children(params["in_tree"])
        changed = {
            "call": close_over(jaxpr),
            "captured": (*captured_names(None, jaxpr.consts), *params["captured"]),
            "in_tree": structure(([0] * len(jaxpr.consts) + unflatten(consts, range(consts.num_leaves)), inputs)),
            "rule": Further(params["rule"], [v.aval for v in jaxpr.constvars]),
        }
        return [*jaxpr.consts, *operands], {**params, **changed}

    def shown_params(self, params: dict[str, Any]) -> dict[str, Any]:
        return {k: v for k, v in sorted(params.items()) if k != "captured"}


custom_vmap_call_p = CustomVmapCall()


def _with_tangents(in_tree: Any, tangents: Sequence[Any]) -> Any:
    """The tree of (captured values, inputs) with tangents among the inputs."""
    captured, inputs = (unflatten(tree, range(tree.num_leaves)) for tree in treedef_children(in_tree))
    return structure((captured, (inputs, list(tangents))))


def _check_captured(dims: Sequence[int | None], rule: VmapRule, captured: Sequence[str]) -> None:
    """ValueError if a value that the function or its rule closes over is mapped."""
    mapped = chosen(captured, [d is not None for d in dims[: len(captured)]])
    if mapped:
        raise ValueError(
            f"custom_vmap: {rule.name.of}, or its rule, closes over {mapped[0]}, which is mapped, but the rule says "
            "what to do with mapped arguments alone; make the value an argument"
        )

