"""custom_vjp: a function with a reverse-mode derivative that the user writes, and its primitive."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import or_
from typing import Any, Final

from xlamini.core import Axis, Dims, Jaxpr, Params, Values, api_boundary_methods, aval_of
from xlamini.core.tracing.tracer import build
from xlamini.interpreters.batch import batch
from xlamini.interpreters.dce import dce
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.partial_eval import partial_eval
from xlamini.staging import check_callable, given, name_of, nonzero_of, with_zeros
from xlamini.staging.call.call import Call, jit_p
from xlamini.staging.call.call_rules import Run
from xlamini.staging.trace.static_args import Names, Numbers
from xlamini.transforms.custom.accumulators import with_accumulators
from xlamini.transforms.custom.custom_call import RuledCall, closed_over_both, closes_over, with_unread
from xlamini.transforms.custom.custom_function import CustomCallTrace, CustomFunction, P, R, Rule
from xlamini.transforms.custom.jvp_rule import BatchedJvp, UserJvp
from xlamini.transforms.custom.linear_map import ForwardMode, linear_map
from xlamini.transforms.custom.rule_contract import Contract
from xlamini.transforms.custom.vjp_rule import BatchedForward, Forward, UserForward, VjpRules


class custom_vjp(CustomFunction[P, R]):
    """A function whose reverse-mode derivative is given by rules, set with `defvjp`. A decorator.

    The positional arguments in `nondiff_argnums` (or named in `nondiff_argnames`) are passed to Python as they are:
    functions, options. All others are arrays, numbers, or containers of them, and get cotangents. Keyword arguments
    are put in their places; keyword-only ones have none, which is a TypeError.

    With `defjvp` the function gets a rule for forward mode besides; without one forward mode is a TypeError.

    >>> @custom_vjp
    ... def clipped(x):
    ...     return x
    >>> clipped.defvjp(lambda x: (x, None), lambda _, ct: (xlamini.numpy.clip(ct, -1, 1),))
    >>> xlamini.grad(lambda x: 5 * clipped(x))(2.0)
    Array(1., dtype=float32, weak_type=True)
    """

    what = "custom_vjp"
    setter = "defvjp(fwd, bwd)"

    def __init__(self, fun: Callable[P, R], nondiff_argnums: Numbers = (), nondiff_argnames: Names = ()):
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self._vjp: VjpRules | None = None
        self._jvp: Callable[..., Any] | None = None
        self._jvp_zeros = False

    def defvjp(
        self,
        fwd: Callable[..., tuple[Any, Any]],
        bwd: Callable[..., Sequence[Any]],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
        generic_batching: bool = False,
    ) -> None:
        """Set the rules: `fwd(*args) -> (output, residuals)` and `bwd(residuals, cotangent) -> cotangents of args`.

        `fwd` takes what the function takes. Residuals are arrays, numbers, or containers of them. `bwd` gets the
        arguments in `nondiff_argnums` first, and returns a tuple with one entry for each of the others: a cotangent of
        its structure, shapes and dtypes, or None for zeros. Both are traced and checked when a derivative is first
        taken. With `symbolic_zeros` fwd gets objects with the fields `value` and `perturbed` in place of its
        arguments' leaves, and symbolically zero cotangents come to bwd as `SymbolicZero`. With `optimize_remat`
        `checkpoint` runs the function itself, not fwd, where no residuals are kept. `generic_batching`
        makes no difference: where fwd returns a batch and the function does not, the output is a batch.
        """
        check_callable("custom_vjp: defvjp", fwd)
        check_callable("custom_vjp: defvjp", bwd)
        self._vjp = VjpRules(fwd, bwd, symbolic_zeros, optimize_remat)

    def defvjp_with_accums(
        self,
        fwd: Callable[..., tuple[Any, Any]],
        bwd: Callable[..., Any],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
        generic_batching: bool = False,
    ) -> None:
        """Like `defvjp`, but `bwd(residuals, cotangent, *accumulators)` puts cotangents into accumulators.

        There is one for each leaf of an argument, in the argument's structure: `accumulator.accum(ct)` adds to it. What
        `bwd` returns is dropped.

        >>> f = custom_vjp(lambda x, y: x * y["a"])
        >>> def bwd(residuals, ct, x, y):
        ...     x.accum(ct * residuals[1])
        ...     y["a"].accum(ct * residuals[0])
        >>> f.defvjp_with_accums(lambda x, y: (f(x, y), (x, y["a"])), bwd)
        >>> xlamini.grad(f, (0, 1))(2.0, {"a": 3.0})
        (Array(3., dtype=float32, weak_type=True), {'a': Array(2., dtype=float32, weak_type=True)})
        """
        check_callable("custom_vjp: defvjp_with_accums", fwd)
        check_callable("custom_vjp: defvjp_with_accums", bwd)
        rules = with_accumulators(fwd, bwd, self.nondiff_argnums)
        self.defvjp(*rules, symbolic_zeros, optimize_remat, generic_batching)

    def defjvp(self, jvp: Rule, symbolic_zeros: bool = False) -> Rule:
        """Set a rule for forward mode, `jvp(primals, tangents) -> (output, tangent of the output)`, as in `custom_jvp`.

        Forward mode (`jvp`, `jacfwd`) then uses it, and reverse mode the rules of `defvjp`; without these it uses this
        one too. Returns the rule. A decorator.

        >>> f = custom_vjp(lambda x: xlamini.numpy.sin(x))
        >>> f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct * xlamini.numpy.cos(x),))
        >>> rule = f.defjvp(lambda primals, tangents: (f(*primals), xlamini.numpy.cos(*primals) * tangents[0]))
        >>> xlamini.jvp(f, (0.0,), (2.0,))
        (Array(0., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
        """
        check_callable("custom_vjp: defjvp", jvp)
        self._jvp, self._jvp_zeros = jvp, symbolic_zeros
        return jvp

    def _rules(self) -> list[Any]:
        return [rule for rule in (self._vjp, self._jvp) if rule is not None]

    def _bind(self, call: CustomCallTrace) -> list[Any]:
        vjp, types = self._vjp, call.site.types
        contract = None if self._jvp is None else Contract(self.what, self._jvp, types)
        forward = None if vjp is None else UserForward(vjp, call.site)
        if forward is not None:
            forward.trace_early(call.leaves)
        return custom_vjp_call_p.bind(
            *call.operands,
            name=types.name,
            call_jaxpr=call.jaxpr,
            fwd=forward,
            jvp=None if contract is None else UserJvp(contract, self._jvp_zeros, call.site),
            captured=call.captured,
            num_closed=len(call.closed),
            symbolic_zeros=vjp is not None and vjp.symbolic_zeros,
            optimize_remat=vjp is not None and vjp.optimize_remat,
        )


api_boundary_methods(custom_vjp)


class CustomVJPCall(RuledCall):
    """A call whose derivative is given by the user's rules.

    Its operands are the values that the function captured, named in `captured`, then `num_closed` values that its rules
    close over, then the arguments. `fwd` or `jvp` is None where there is no such rule.
    """

    name = "custom_vjp_call"
    called = "call_jaxpr"
    hidden: tuple[str, str, str, str] = ("captured", "jvp", "num_closed", "optimize_remat")

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        """By the rule for forward mode; without one, by a linear map that can only be transposed."""
        if params["jvp"] is None:
            return self.linearize(primals, tangents, **params)
        start = self.num_captured(tangents, params)
        return params["jvp"].pushed(primals[start:], tangents[start:])

    def batch(
        self, axis: Axis, operands: Values, dims: Dims, *, call_jaxpr: Jaxpr, **params: Any
    ) -> Any:
        force = _batched_outputs(axis, tuple(dims), call_jaxpr)
        batched, out_dims = batch(call_jaxpr, axis, tuple(dims), force)
        rule_dims = tuple(dims[len(params["captured"]) :])
        fwd = params["fwd"] and BatchedForward(params["fwd"], axis, rule_dims, force)
        jvp = params["jvp"] and BatchedJvp(params["jvp"], axis, rule_dims, force)
        return self.bind(*operands, **{**params, "call_jaxpr": batched, "fwd": fwd, "jvp": jvp}), out_dims

    def linearize(self, primals: Values, tangents: Values, **params: Any) -> Any:
        start = self.num_captured(tangents, params)
        if params["fwd"] is None:
            return params["jvp"].linearized(primals[start:], tangents[start:])
        end, out_avals = start + params["num_closed"], params["call_jaxpr"].out_avals
        perturbed = nonzero_of(tangents[end:])
        if not any(perturbed):
            return self.bind(*primals, **params), with_zeros(out_avals, [False] * len(out_avals), ())
        forward = params["fwd"].traced(perturbed)
        _check_closed(forward, tangents[start:end], params["name"])
        if params["optimize_remat"]:
            results = _bind_remat_opt(forward, lambda *xs: self.bind(*xs, **params), primals, start)
        else:
            results = evaluate(params["fwd"].at_call(forward.jaxpr), primals[start:])
        outs, residuals = results[: forward.count], results[forward.count :]
        rule = params["jvp"] and ForwardMode(params["jvp"])
        by_rule = {"forward": rule, "primals": primals[start:] if rule else ()}
        return outs, linear_map(forward.backward, residuals, tangents[end:], out_avals, **by_rule)

    def has_own_jvp(self, params: Params) -> bool:
        return params["jvp"] is not None

    def shown_params(self, params: Params) -> Params:
        return super().shown_params({**params, "bwd": params["fwd"] and name_of(params["fwd"].bwd)})


custom_vjp_call_p: Final = CustomVJPCall()


def _batched_outputs(axis: Axis, dims: Dims, jaxpr: Jaxpr) -> tuple[bool, ...]:
    """Which outputs of a function depend on the example; a sum over the axis does not."""
    return tuple(d is not None for d in batch(jaxpr, axis, dims)[1])


def _check_closed(forward: Forward, tangents: Values, name: str) -> None:
    """An error if the outputs depend on a value that fwd closes over and that is being differentiated."""
    moving = given(tangents)
    if not moving:
        return
    unknown = (*nonzero_of(tangents), *(False,) * (len(forward.jaxpr.invars) - len(tangents)))
    # not dce: the call of a custom_vjp function in fwd has what its rules close over as operands, read or not
    if any(partial_eval(forward.jaxpr, unknown).unknown_out[: forward.count]):
        raise closes_over(custom_vjp_call_p, f"the fwd rule of {name}", f"a value of type {moving[0].aval.str_long()}")


# --- optimize_remat


class RematOpt(Call):
    """A call of `jaxpr`, a fwd rule, which dead-code elimination replaces by `primal`, the function itself.

    Both take the same operands, and `primal` returns the first results of `jaxpr`. Under `checkpoint` the forward pass
    keeps no residuals; so it runs the function, which may be a kernel that is fast because it makes none.
    """

    name = "remat_opt"
    shares_names = False

    def batch(
        self, axis: Axis, operands: Values, dims: Dims, *, jaxpr: Jaxpr, **params: Any
    ) -> Any:
        outs = _batched_outputs(axis, tuple(dims), params["primal"])
        results = _batched_outputs(axis, tuple(dims), jaxpr)
        force = (*map(or_, outs, results), *results[len(outs) :])
        batched, out_dims = batch(jaxpr, axis, tuple(dims), force)
        primal, _ = batch(params["primal"], axis, tuple(dims), force[: len(outs)])
        return self.bind(*operands, **{**params, "jaxpr": batched, "primal": primal}), out_dims

    def dce(self, used: Sequence[bool], params: Params) -> Any:
        count = len(params["primal"].outvars)
        if any(used[count:]):
            return None
        primal, used_inputs = dce(params["primal"], tuple(used[:count]))
        return list(used_inputs), list(used), {**params, "jaxpr": primal, "primal": primal}

    def checked(self, errors: frozenset[str], operands: Values, *, jaxpr: Jaxpr, **params: Any) -> Any:
        from xlamini.staging.call.check import errors_beside  # for those who check only

        return self.bind(*operands, jaxpr=jaxpr, **params), errors_beside(jaxpr, errors, operands)

    def with_captured(self, operands: Values, params: Params) -> Any:
        jaxpr, primal, captured = closed_over_both(params["jaxpr"], params["primal"])
        return [*captured, *operands], {**params, "jaxpr": jaxpr, "primal": primal}

    def run(self, params: Params) -> Run:
        """Derivatives are those of a call of `jaxpr` alone."""
        return jit_p.run({"name": params["name"]})


remat_opt_p: Final = RematOpt()


def _bind_remat_opt(
    forward: Forward, call: Callable[..., list[Any]], operands: Values, start: int
) -> list[Any]:
    """The outputs and residuals of a forward rule of `operands[start:]`, or of `call(*operands)` its outputs."""
    avals, name = [aval_of(x) for x in operands], forward.jaxpr.name
    jaxpr, (primal, _) = with_unread(forward.jaxpr, 0, avals[:start]), build(call, avals, name)
    return remat_opt_p.bind(*operands, jaxpr=jaxpr, primal=primal, name=name)
