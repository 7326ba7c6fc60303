"""custom_vmap: a function with a batching rule that the user writes, and its primitive; sequential_vmap."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from xlamini.core import (
    Axis,
    Dims,
    Jaxpr,
    Params,
    Values,
    api_boundary_methods,
    example_of,
    flatten,
    tree_map,
    unflatten,
)
from xlamini.core.pytree import structure
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.jvp import jvp
from xlamini.primitives import with_batch_first
from xlamini.staging import check_callable, chosen, given, inverse, merged, nonzero_of
from xlamini.staging.call.call_rules import call_jvp, call_linearize
from xlamini.transforms.control_flow.map import map as map_loop
from xlamini.transforms.custom.closure_convert import captured_names
from xlamini.transforms.custom.custom_call import RuledCall
from xlamini.transforms.custom.custom_function import CustomCallTrace, CustomFunction
from xlamini.transforms.custom.rule_contract import Contract
from xlamini.transforms.custom.vmap_rule import JvpOfVmap, UserVmap, VmapRule


class custom_vmap(CustomFunction[..., Any]):
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

    what = "custom_vmap"
    setter = "def_vmap(rule)"
    instead = ""

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

    def _bind(self, call: CustomCallTrace) -> list[Any]:
        assert self.vmap_rule is not None
        types = call.site.types
        return custom_vmap_call_p.bind(
            *call.operands,
            call=call.jaxpr,
            captured=(*call.captured, *captured_names(self.vmap_rule, call.closed)),
            in_tree=structure(types.args(call.leaves)),
            out_tree=types.out_tree,
            rule=UserVmap(Contract(self.what, self.vmap_rule, types, ValueError), call.site),
        )


api_boundary_methods(custom_vmap)


class CustomVmapCall(RuledCall):
    """A call that is batched by the user's rule.

    The first operands are the values that the function captured and those that its rule closes over, all of them named
    in `captured`. The tree of the others is `in_tree`.
    """

    name = "custom_vmap_call"
    called = "call"

    def jvp(
        self, primals: Values, tangents: Values, *, call: Jaxpr, rule: VmapRule, **params: Any
    ) -> Any:
        """The call of the function with its tangents, batched by the derivative of the user's rule."""
        nonzero, captured = nonzero_of(tangents), params["captured"]
        if any(nonzero[: len(captured)]):  # the rule is not differentiated in these
            return call_jvp(evaluate, call, primals, tangents)
        _, nonzero_out = jvp(call, nonzero)
        inputs = unflatten(params["in_tree"], primals[len(captured) :])
        both = {
            "in_tree": structure((inputs, given(tangents))),
            "out_tree": structure((unflatten(params["out_tree"], call.outvars), chosen(call.outvars, nonzero_out))),
            "rule": JvpOfVmap(rule, nonzero[len(captured) - rule.num_closed :], nonzero_out),
        }
        return call_jvp(lambda jaxpr, xs: self.bind(*xs, **{**params, **both, "call": jaxpr}), call, primals, tangents)

    def batch(
        self, axis: Axis, operands: Values, dims: Dims, *, rule: VmapRule, **params: Any
    ) -> Any:
        mapped, captured = tuple(d is not None for d in dims), params["captured"]
        _check_captured(mapped, rule, captured)
        start = len(captured) - rule.num_closed
        jaxpr, out_batched = rule.traced(axis, mapped[start:])
        outs = evaluate(jaxpr, with_batch_first(operands[start:], dims[start:], axis.size, mapped[start:]))
        return outs, [0 if b else None for b in out_batched]

    def linearize(self, primals: Values, tangents: Values, *, call: Jaxpr, **params: Any) -> Any:
        return call_linearize(evaluate, call, primals, tangents)

    def shown_params(self, params: Params) -> Params:
        """With `in_tree` as in JAX: of the captured values too."""
        in_tree = params["in_tree"]
        whole = [0] * len(params["captured"]), example_of(in_tree)
        return super().shown_params({**params, "in_tree": structure(whole)})


custom_vmap_call_p: Final = CustomVmapCall()


def _check_captured(mapped: Sequence[bool], rule: VmapRule, captured: Sequence[str]) -> None:
    """ValueError if a value that the function or its rule closes over is mapped."""
    wrong = chosen(captured, mapped[: len(captured)])
    if wrong:
        raise ValueError(
            f"custom_vmap: {rule.contract.call.name}, or its rule, closes over {wrong[0]}, which is mapped, but the "
            "rule says what to do with mapped arguments alone; make the value an argument"
        )


def sequential_vmap(f: Callable[..., Any]) -> custom_vmap:
    """A function like `f` that vmap runs on one example after the other, in a loop; for what cannot be batched.

    >>> xlamini.vmap(sequential_vmap(lambda x, y: x + y), in_axes=(0, None))(xlamini.numpy.ones(3), 1.0)
    Array([2., 2., 2.], dtype=float32)
    """
    mapped = custom_vmap(f)

    @mapped.def_vmap
    def rule(axis_size: int, in_batched: Values, *args: Any) -> tuple[Any, Any]:
        leaves, tree = flatten(args)
        marks = flatten(tuple(in_batched))[0]

        def of_one(examples: Values) -> Any:
            return mapped(*unflatten(tree, merged(marks, examples, chosen(leaves, inverse(marks)))))

        out = map_loop(of_one, chosen(leaves, marks))
        return out, tree_map(lambda _: True, out)

    return mapped
