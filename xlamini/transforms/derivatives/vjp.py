"""Reverse mode for functions with any output: vjp, and linear_transpose for linear functions."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar, overload

from xlamini.core import (
    Avals,
    Jaxpr,
    MissingRule,
    ShapedArray,
    ShapeError,
    Values,
    Zero,
    aval_of,
    cotangent_aval,
    first_difference,
    flatten,
    flatten_from_user,
    float0,
    is_differentiable,
    is_zero,
    register_pytree_node,
    treedef_children,
    unflatten,
)
from xlamini.core.api_boundary import api_boundary
from xlamini.core.errors import JAXTypeError
from xlamini.core.hi_types import fits
from xlamini.core.tangents import NonlinearError
from xlamini.core.wrapping import wraps
from xlamini.interpreters.linearize import Linearized, linearize
from xlamini.interpreters.transpose import transpose
from xlamini.primitives import convert, instantiated, zeros
from xlamini.primitives.reshard import divided_as
from xlamini.staging import (
    ArgNames,
    LeafNames,
    Trace,
    avals_of,
    check_callable,
    has_refs,
    name_of,
    rebuilt,
    transformed,
)
from xlamini.staging.run.program_cache import apply
from xlamini.staging.trace.ref_arguments import OpenedRefs, is_ref_argument, pure
from xlamini.staging.trace.tracing import trace
from xlamini.transforms.derivatives.diff_args import DiffArgs, split_aux
from xlamini.transforms.derivatives.grad_refs import (
    DontWant,
    GradValue,
    check_refs_have_refs,
    checked_entries,
    delivered,
    without_nodes,
)
from xlamini.transforms.derivatives.linearity import nonlinear_part
from xlamini.transforms.derivatives.pullback import as_gradients, evaluated, pull_back, pull_back_at, reads_values

R = TypeVar("R")
A = TypeVar("A")


@overload
def vjp(
    fun: Callable[..., R], *primals: Any, has_aux: Literal[False] = False, reduce_axes: Sequence[Any] = ()
) -> tuple[R, VJP]: ...
@overload
def vjp(
    fun: Callable[..., tuple[R, A]], *primals: Any, has_aux: Literal[True], reduce_axes: Sequence[Any] = ()
) -> tuple[R, VJP, A]: ...
@overload
def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool, reduce_axes: Sequence[Any] = ()) -> Any: ...
@api_boundary
def vjp(fun: Callable[..., Any], *primals: Any, has_aux: bool = False, reduce_axes: Sequence[Any] = ()) -> Any:
    """The outputs of `fun(*primals)`, and the pullback: from cotangents of the outputs to cotangents of the primals.

    The function is evaluated once; the pullback stores its residuals. With `has_aux` the auxiliary data come third.

    >>> y, pullback = xlamini.vjp(xlamini.numpy.sin, 0.0)
    >>> pullback(1.0)
    (Array(1., dtype=float32, weak_type=True),)
    """
    if not has_refs(flatten(primals)[0]):
        return _vjp(fun, primals, has_aux)
    refs = OpenedRefs("vjp", primals)
    with refs.passed():
        out, pullback, (aux, values) = _vjp(_of_values(fun, has_aux), refs.tree, True)
    refs.store(values)
    return (out, pullback, aux) if has_aux else (out, pullback)


def _vjp(fun: Callable[..., Any], primals: Values, has_aux: bool) -> Any:
    diff = DiffArgs(fun, tuple(range(len(primals))), primals, {}, "vjp")
    traced = diff.trace(has_aux)
    lin = linearize(traced.jaxpr, diff.nonzero(traced))
    outs, residuals = evaluated(lin, diff.operands(traced))
    out_tree = treedef_children(traced.out_tree)[0]
    rule = Rule(lin, diff.tree, diff.avals, out_tree, traced.jaxpr.out_avals, diff.fun_name)
    out, aux = diff.split(traced, outs)
    return (out, VJP(rule, residuals), aux) if has_aux else (out, VJP(rule, residuals))


def _of_values(fun: Callable[..., Any], has_aux: bool) -> Callable[..., Any]:
    """`fun` of opened arguments; the final values of the refs are auxiliary data."""
    of_values = pure(fun)

    @wraps(fun)
    def paired(*opened: Any) -> Any:
        result, values = of_values(*opened)
        out, aux = split_aux(result, "vjp", name_of(fun)) if has_aux else (result, None)
        return out, (aux, values)

    return paired


class Rule:
    """The static part of a pullback: the linear program, and the types of its inputs and outputs."""

    def __init__(
        self,
        lin: Linearized,
        in_tree: Any,
        in_avals: Avals,
        out_tree: Any,
        out_avals: Avals,
        fun_name: str,
    ):
        self.lin, self.fun_name = lin, fun_name
        self.in_tree, self.in_avals = in_tree, in_avals
        self.out_tree, self.out_avals = out_tree, out_avals


_VALUE = GradValue()


class VJP:
    """A pullback: from the cotangent of the output to the cotangents of the primals. It is a pytree of residuals."""

    def __init__(self, rule: Rule, residuals: Values):
        self.rule, self.residuals = rule, list(residuals)

    @api_boundary
    def __call__(self, *cotangents: Any) -> tuple[Any, ...]:
        return self._delivered([_VALUE] * self.rule.in_tree.num_leaves, cotangents)

    @api_boundary
    def with_refs(self, *entries: Any) -> Callable[..., Any]:
        """The pullback that adds gradients to refs, with one entry for each argument of the function.

        An entry is a ref, to which the gradient is added, `ad.GradValue()` for a gradient that is returned, or
        `ad.DontWant()` for one that is not computed; or a container of these like the argument.
        """
        checked = checked_entries(entries, self.rule.in_tree, self.rule.fun_name)
        return api_boundary(lambda *cotangents: self._delivered(checked, cotangents))

    def _delivered(self, entries: Sequence[Any], cotangents: Values) -> Any:
        """The gradients for these cotangents, where they are returned, and markers for the others."""
        rule = self.rule
        nodes = flatten(unflatten(rule.in_tree, range(len(entries))), is_ref_argument)[0]
        check_refs_have_refs(entries, nodes, rule.fun_name)
        gradients = as_gradients(rule.in_avals, self._cotangents_in(entries, cotangents))
        found = [delivered(*each) for each in zip(entries, gradients, rule.in_avals, strict=True)]
        return without_nodes(rebuilt(rule.in_tree, found))

    def _cotangents_in(self, entries: Sequence[Any], cotangents: Values) -> list[Any]:
        """The cotangents of the differentiable inputs."""
        if len(cotangents) != 1:
            raise TypeError(
                f"vjp: the pullback of {self.rule.fun_name} takes one argument, a cotangent with the structure of the "
                f"output, got {len(cotangents)}; pass a tuple for an output that is one"
            )
        rule, (out_ct,) = self.rule, cotangents
        out_cts = _check_cotangents(rule, out_ct)
        rest = rule.out_avals[len(out_cts) :]
        cts = [*out_cts, *(Zero(cotangent_aval(a)) for a in rest)]
        dense = [ct for ct in cts if not is_zero(ct)]
        zero = tuple(ct.aval if is_zero(ct) else None for ct in cts)
        pairs = zip(entries, rule.in_avals, strict=True)
        wanted = tuple(not isinstance(entry, DontWant) for entry, aval in pairs if is_differentiable(aval))
        operands, options = [*dense, *self.residuals], (rule.lin, zero, None if all(wanted) else wanted)
        try:
            return transformed(_run_pullback, rule.lin.tangent, options, operands, f"vjp_{rule.fun_name}")
        except JAXTypeError:
            if not reads_values(rule.lin):
                raise
        return list(map(instantiated, pull_back_at(rule.lin, self.residuals, cts, options[2])))

    def __repr__(self) -> str:
        residuals = ", ".join(aval_of(r).str_short() for r in self.residuals)
        return f"VJP({self.rule.fun_name}, residuals=[{residuals}])"


register_pytree_node(VJP, lambda v: (v.residuals, v.rule), lambda rule, residuals: VJP(rule, residuals))


def _run_pullback(
    jaxpr: Jaxpr, lin: Linearized, zero: Sequence[Any], wanted: Sequence[bool] | None, operands: Values
) -> list[Any]:
    """The cotangents of the inputs; `operands` are the nonzero output cotangents and the residuals.

    `zero` has, for each output, the aval of a zero cotangent, or None for a nonzero one.
    """
    count = len(operands) - lin.num_residuals
    dense = iter(operands[:count])
    cts = [next(dense) if aval is None else Zero(aval) for aval in zero]
    return list(map(instantiated, pull_back(lin, operands[count:], cts, wanted)))


def _check_cotangents(rule: Rule, out_ct: Any) -> list[Any]:
    """The flat cotangents, with symbolic zeros for integer outputs; an error unless they fit the outputs."""
    leaves, tree = flatten(out_ct)
    names = LeafNames("cotangent", tree)
    avals_of(leaves, names, f"the pullback of {rule.fun_name}")
    if tree != rule.out_tree:
        where = first_difference(rule.out_tree, tree, ("output", "cotangent"))
        raise ValueError(f"vjp: the cotangent must have the structure of the output of {rule.fun_name}: {where}")
    checked = []
    for i, (ct, aval) in enumerate(zip(leaves, rule.out_avals, strict=False)):
        actual, expected = aval_of(ct), cotangent_aval(aval)
        if not _fits(actual, expected):
            raise ShapeError(
                f"vjp: the {names[i]} is {actual.str_long()}, but the output of {rule.fun_name} there is "
                f"{aval.str_long()}"
                + ("; they must be of one type" if expected.dtype == aval.dtype else _AN_INTEGER)
            )
        dense = ct if fits(actual, expected) else convert(ct, expected.dtype)
        if expected.split is not None and (expected.split.unreduced or expected.split.reduced):
            dense = divided_as(dense, expected.split)
        checked.append(Zero(expected) if expected.dtype == float0 else dense)
    return checked


_AN_INTEGER = ", so that it must be float0 or an integer"


def _fits(actual: ShapedArray, expected: ShapedArray) -> bool:
    """Whether a cotangent has the expected type, or converts to it: any does to float0, a Python number to its kind."""
    if actual.shape != expected.shape or expected.dtype == float0:
        return actual.shape == expected.shape
    wider = actual.weak_type and (actual.dtype.kind != "c" or expected.dtype.kind == "c")
    return fits(actual, expected) or wider


def linear_transpose(fun: Callable[..., Any], *primals: Any, reduce_axes: Sequence[Any] = ()) -> Callable[..., Any]:
    """The transpose of a linear function; only the types of `primals` are used.

    Returns a function from a cotangent of the output to a tuple of cotangents of the arguments.

    >>> xlamini.linear_transpose(lambda x: 3 * x, 1.0)(2.0)
    (Array(6., dtype=float32, weak_type=True),)
    """
    check_callable("linear_transpose", fun)
    leaves, in_tree = flatten_from_user((primals, {}))
    names, fun_name = ArgNames(fun, in_tree), name_of(fun)
    avals = avals_of(leaves, names, fun_name)
    traced = trace(fun, in_tree, avals, None, names, reuse_equal=True)
    linear = (False,) * len(traced.captured) + (True,) * len(avals)

    @api_boundary
    def transposed(out_ct: Any) -> Any:
        cts = _cotangents_of_linear(traced, fun_name, out_ct)
        try:
            backward, nonzero = transpose(traced.jaxpr, linear, (True,) * len(cts))
        except (MissingRule, NonlinearError) as error:
            raise _not_linear(traced.jaxpr, linear, fun_name, error) from None
        outs = iter(apply(backward, [*traced.captured, *cts]))
        dense = [next(outs) if nz else zeros(a) for nz, a in zip(nonzero, avals, strict=True)]
        return rebuilt(flatten(primals)[1], dense)

    return transposed


def _cotangents_of_linear(traced: Trace, fun_name: str, out_ct: Any) -> list[Any]:
    """The flat cotangents; TypeError unless they have the types of the outputs."""
    cts, tree = flatten_from_user(out_ct)
    names = LeafNames("cotangent", tree)
    avals = avals_of(cts, names, f"the transpose of {fun_name}")
    if tree != traced.out_tree:
        where = first_difference(traced.out_tree, tree, ("output", "cotangent"))
        raise TypeError(f"linear_transpose: the cotangent must have the structure of the output of {fun_name}: {where}")
    for i, (ct, expected) in enumerate(zip(avals, traced.jaxpr.out_avals, strict=True)):
        if not fits(ct, expected):
            raise TypeError(
                f"linear_transpose: {names[i]} is {ct.str_long()}, but that output is "
                f"{expected.str_long()} for {fun_name}; they must be of one type"
            )
    return cts


def _not_linear(jaxpr: Jaxpr, linear: Sequence[bool], fun_name: str, error: Exception) -> Exception:
    """The error that names the nonlinear operation: one without a transpose rule, or the one in `error`."""
    problem = nonlinear_part(jaxpr, linear) or str(error)
    return (MissingRule if isinstance(error, MissingRule) else TypeError)(
        f"linear_transpose: {fun_name} is not linear in its arguments: {problem}; for the derivative of a function "
        "that is not linear use vjp"
    )
