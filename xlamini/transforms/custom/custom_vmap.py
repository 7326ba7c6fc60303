"""custom_vmap: a function with a batching rule that the user writes."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core.api_boundary import edge_methods
from xlamini.core.jaxpr import Jaxpr
from xlamini.core.primitive import Axis
from xlamini.core.pytree import structure, treedef_children, unflatten
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.jvp import jvp
from xlamini.primitives.batch_ops import with_batch_first
from xlamini.staging.call.call_rules import linearized, pushed
from xlamini.staging.call.higher_order import chosen, given, nonzero_of
from xlamini.staging.trace.arguments import check_callable
from xlamini.transforms.custom.closures import captured_names
from xlamini.transforms.custom.customized import CustomCall, Customized
from xlamini.transforms.custom.ruled_call import RuledCall
from xlamini.transforms.custom.vmap_rule import Further, PushedVmap, UserVmap, VmapRule


class custom_vmap(Customized):
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

    what, setter, instead = "custom_vmap", "def_vmap(rule)", ""

    def __init__(self, fun: Callable[..., Any]):
        super().__init__(fun)
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

    def _rules(self) -> list[Any]:
        return [] if self.vmap_rule is None else [self.vmap_rule]

    def _staged(self, call: CustomCall) -> list[Any]:
        assert self.vmap_rule is not None
        captured, closed = call.traced.captured, call.closed
        hidden = [0] * (len(captured) + len(closed))
        return custom_vmap_call_p.bind(
            *call.operands,
            call=call.jaxpr,
            captured=(*captured_names(self.fun, captured), *captured_names(self.vmap_rule, closed)),
            in_tree=structure((hidden, unflatten(call.in_tree, call.leaves)[0])),
            out_tree=call.traced.out_tree,
            rule=UserVmap(self.vmap_rule, call),
        )


edge_methods(custom_vmap)


class CustomVmapCall(RuledCall):
    """A call that is batched by the user's rule.

    The first operands are values that the function and its rule captured, named in `captured`.
    """

    name = "custom_vmap_call"
    called = "call"

    def jvp(
        self, primals: Sequence[Any], tangents: Sequence[Any], *, call: Jaxpr, rule: VmapRule, **params: Any
    ) -> Any:
        """The call of the function with its tangents, batched by the user's rule with its tangents."""
        nonzero = nonzero_of(tangents)
        if any(nonzero[: len(params["captured"])]):  # the rule knows no tangents of these
            return pushed(evaluate, call, primals, tangents)
        _, nonzero_out = jvp(call, nonzero)
        both = {
            "in_tree": _with_tangents(params["in_tree"], given(tangents)),
            "out_tree": structure((unflatten(params["out_tree"], call.outvars), chosen(call.outvars, nonzero_out))),
            "rule": PushedVmap(rule, nonzero, nonzero_out),
        }
        return pushed(lambda jaxpr, xs: self.bind(*xs, **{**params, **both, "call": jaxpr}), call, primals, tangents)

    def batch(
        self, axis: Axis, operands: Sequence[Any], dims: Sequence[int | None], *, rule: VmapRule, **params: Any
    ) -> Any:
        _check_captured(dims, rule, params["captured"])
        mapped = tuple(d is not None for d in dims)
        ruled = rule.traced(axis, mapped)
        outs = evaluate(ruled.jaxpr, with_batch_first(operands, dims, axis.size, mapped))
        return outs, [0 if b else None for b in ruled.out_batched]

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any], *, call: Jaxpr, **params: Any) -> Any:
        return linearized(evaluate, call, primals, tangents)

    def with_captured(self, operands: Sequence[Any], params: dict[str, Any]) -> Any:
        further, (hidden, inputs) = params["call"].consts, treedef_children(params["in_tree"])
        every, closed = super().with_captured(operands, params)
        changed = {
            "in_tree": structure(([0] * len(further) + unflatten(hidden, range(hidden.num_leaves)), inputs)),
            "rule": Further(params["rule"], [v.aval for v in params["call"].constvars]),
        }
        return every, {**closed, **changed}


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
