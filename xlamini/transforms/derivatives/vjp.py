"""Reverse mode for functions with any output: vjp."""
from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal, TypeVar, overload

from xlamini.core import (
    Avals,
    Jaxpr,
    ShapedArray,
    ShapeError,
    Values,
    Zero,
    aval_of,
    cotangent_aval,
    example_of,
    first_difference,
    flatten,
    float0,
    is_differentiable,
    is_zero,
    register_pytree_node,
    treedef_children,
)
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.core.program.hi_types import fits
from xlamini.core.pytree import PyTreeDef
from xlamini.core.wrapping import wraps
from xlamini.interpreters.linearize import Linearized, linearize
from xlamini.primitives import convert, instantiated
from xlamini.primitives.placement.reshard import reshard_as
from xlamini.staging import LeafNames, Mask, avals_of, chosen, has_refs, name_of, rebuilt, transformed
from xlamini.staging.trace.ref_arguments import OpenedRefs, is_ref_argument, pure
from xlamini.transforms.derivatives.diff_args import DiffArgs, split_aux
from xlamini.transforms.derivatives.grad_refs import (
    DontWant,
    GradValue,
    Marker,
    check_refs_have_refs,
    checked_entries,
    delivered,
    without_nodes,
)
from xlamini.transforms.derivatives.pullback import (
    as_gradients,
    evaluated,
    nonzero_outputs,
    pull_back,
    pull_back_at,
    runs_in_place,
)
from xlamini.transforms.derivatives.saved_args import (
    NotNeeded,
    NotSaveable,
    as_tuples,
    bool_leaves,
    check_restored,
    leaves_of_args,
)

R = TypeVar("R")
A = TypeVar("A")


@overload
def vjp(
    fun: Callable[..., R],
    *primals: Any,
    has_aux: Literal[False] = False,
    reduce_axes: Sequence[Any] = (),
    saveable_args: Any = True,
    in_nzs: Any = None,
) -> tuple[R, VJP]: ...
@overload
def vjp(
    fun: Callable[..., tuple[R, A]],
    *primals: Any,
    has_aux: Literal[True],
    reduce_axes: Sequence[Any] = (),
    saveable_args: Any = True,
    in_nzs: Any = None,
) -> tuple[R, VJP, A]: ...
@overload
def vjp(
    fun: Callable[..., Any],
    *primals: Any,
    has_aux: bool,
    reduce_axes: Sequence[Any] = (),
    saveable_args: Any = True,
    in_nzs: Any = None,
) -> Any: ...
@api_boundary
def vjp(
    fun: Callable[..., Any],
    *primals: Any,
    has_aux: bool = False,
    reduce_axes: Sequence[Any] = (),
    saveable_args: Any = True,
    in_nzs: Any = None,
) -> Any:
    """The outputs of `fun(*primals)`, and the pullback: from cotangents of the outputs to cotangents of the primals.

    The function is evaluated once; the pullback stores its residuals. With `has_aux` the auxiliary data come third.

    `pullback.args_res` has the arguments that the pullback reads, and `pullback.opaque_residuals` what was computed
    for it. `saveable_args` is a bool, or a tuple of them for the arguments (and of tuples for containers): the pullback
    does not store an argument with False, so that `args_res` has NotSaveable() there until the user assigns it.

    `in_nzs` is of the same form: an argument with False is a constant, whose cotangent is zero. `pullback.out_nzs`
    tells which outputs then depend on the others.

    >>> y, pullback = xlamini.vjp(xlamini.numpy.sin, 0.0)
    >>> pullback(1.0)
    (Array(1., dtype=float32, weak_type=True),)
    """
    if not has_refs(flatten(primals)[0]):
        return _vjp(fun, primals, has_aux, saveable_args, in_nzs)
    refs = OpenedRefs("vjp", primals)
    with refs.passed():
        out, pullback, (aux, values) = _vjp(_of_values(fun, has_aux), refs.tree, True, saveable_args, in_nzs)
    refs.store(values)
    return (out, pullback, aux) if has_aux else (out, pullback)


def _vjp(fun: Callable[..., Any], primals: Values, has_aux: bool, saveable: Any, in_nzs: Any) -> Any:
    diff = DiffArgs(fun, tuple(range(len(primals))), primals, {}, "vjp")
    traced = diff.trace(has_aux)
    lin = linearize(traced.jaxpr, diff.nonzero(traced, in_nzs))
    outs, residuals = evaluated(lin, diff.operands(traced))
    out_tree, nonzero = treedef_children(traced.out_tree)[0], diff.with_tangents(in_nzs)
    rule = PullbackRule(lin, diff.tree, diff.avals, nonzero, out_tree, traced.jaxpr.out_avals, diff.fun_name)
    out, aux = diff.split(traced, outs)
    pullback = VJP(rule, residuals if saveable is True else rule.saveable(residuals, saveable))
    return (out, pullback, aux) if has_aux else (out, pullback)


def _of_values(fun: Callable[..., Any], has_aux: bool) -> Callable[..., Any]:
    """`fun` of opened arguments; the final values of the refs are auxiliary data."""
    of_values = pure(fun)

    @wraps(fun)
    def paired(*opened: Any) -> Any:
        result, values = of_values(*opened)
        out, aux = split_aux(result, "vjp", name_of(fun)) if has_aux else (result, None)
        return out, (aux, values)

    return paired


class PullbackRule:
    """The static part of a pullback: the linear program, and the types of its inputs and outputs."""

    fun_name: str
    lin: Linearized
    in_avals: Avals
    in_tree: Any
    nonzero: Mask
    out_avals: Avals
    out_tree: Any

    def __init__(
        self,
        lin: Linearized,
        in_tree: Any,
        in_avals: Avals,
        nonzero: Mask,
        out_tree: Any,
        out_avals: Avals,
        fun_name: str,
    ):
        self.lin, self.fun_name = lin, fun_name
        self.in_tree, self.in_avals, self.nonzero = in_tree, in_avals, nonzero
        self.out_tree, self.out_avals = out_tree, out_avals

    @functools.cached_property
    def places(self) -> tuple[int | None, ...]:
        """For each residual the leaf of the arguments that it is; None for one that is computed or captured."""
        count = len(self.in_avals)
        first = len(self.lin.primal.in_avals) - count
        return tuple(s - first if first <= s < first + count else None for s in self.lin.sources)

    def spread(self, cotangents: Iterable[Any]) -> list[Any]:
        """The cotangents of all differentiable inputs, with zeros for those that `in_nzs` says are constants."""
        found, pairs = iter(cotangents), zip(self.in_avals, self.nonzero, strict=True)
        return [next(found) if nz else Zero(cotangent_aval(a)) for a, nz in pairs if nz or is_differentiable(a)]

    def saveable(self, residuals: Values, saveable: Any) -> list[Any]:
        """The residuals without the arguments for which `saveable` is False."""
        kept = bool_leaves("vjp: saveable_args", saveable, self.in_tree)
        pairs = zip(residuals, self.places, strict=True)
        return [r if place is None or kept[place] else NotSaveable() for r, place in pairs]


_VALUE = GradValue()


class VJP:
    """A pullback: from the cotangent of the output to the cotangents of the primals. It is a pytree of residuals."""

    residuals: list[Any]
    rule: PullbackRule

    def __init__(self, rule: PullbackRule, residuals: Values):
        self.rule, self.residuals = rule, list(residuals)
        self._args: list[Any] | None = None

    @property
    def args_res(self) -> list[Any]:
        """What the pullback reads of each argument, in nested tuples: the values, NotNeeded() or NotSaveable().

        The list may be changed, and is read when the pullback is called.
        """
        if self._args is None:
            leaves: list[Any] = [NotNeeded()] * len(self.rule.in_avals)
            for value, place in zip(self.residuals, self.rule.places, strict=True):
                if place is not None:
                    leaves[place] = value
            self._args = list(as_tuples(self.rule.in_tree, leaves))
        return self._args

    @args_res.setter
    def args_res(self, values: Sequence[Any]) -> None:
        self._args = list(values)

    @property
    def opaque_residuals(self) -> list[Any]:
        """The residuals that are no arguments."""
        return [r for r, place in zip(self.residuals, self.rule.places, strict=True) if place is None]

    @property
    def in_tree(self) -> PyTreeDef:
        return self.rule.in_tree

    @property
    def out_tree(self) -> PyTreeDef:
        return self.rule.out_tree

    @property
    def out_nzs(self) -> Any:
        """Which outputs have a tangent where the arguments of `in_nzs` have one: bools, in the output's structure."""
        return nonzero_outputs(self.rule.lin, self.out_tree)

    def replace(self, *, args_res: Sequence[Any]) -> VJP:
        """A pullback with other `args_res`."""
        new = VJP(self.rule, self.residuals)
        new.args_res = args_res
        return new

    def stored(self) -> list[Any]:
        """The residuals, with the arguments that `args_res` has by now."""
        if self._args is None:
            return self.residuals
        leaves = leaves_of_args(self._args, self.rule.in_tree, self.rule.fun_name)
        return [r if p is None else leaves[p] for r, p in zip(self.residuals, self.rule.places, strict=True)]

    def _restored(self) -> list[Any]:
        """The residuals; an error for an argument that is not there, or not what it was."""
        rule, residuals = self.rule, self.stored()
        if self._args is None and not any(isinstance(r, NotSaveable) for r in residuals):
            return residuals
        for value, place in zip(residuals, rule.places, strict=True):
            if place is not None:
                check_restored(value, rule.in_avals[place], place, rule.in_tree, rule.fun_name)
        return residuals

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
        nodes = flatten(example_of(rule.in_tree), is_ref_argument)[0]
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
        every = tuple(not isinstance(entry, DontWant) for entry in chosen(entries, rule.nonzero))
        residuals, wanted = self._restored(), None if all(every) else every
        if runs_in_place(rule.lin):
            return rule.spread(map(instantiated, pull_back_at(rule.lin, residuals, cts, wanted)))
        options = rule.lin, zero, wanted
        name = f"vjp_{rule.fun_name}"
        return rule.spread(transformed(_run_pullback, rule.lin.tangent, options, [*dense, *residuals], name))

    def __repr__(self) -> str:
        residuals = ", ".join(repr(r) if isinstance(r, Marker) else aval_of(r).str_short() for r in self.stored())
        return f"VJP({self.rule.fun_name}, residuals=[{residuals}])"


register_pytree_node(VJP, lambda v: (v.stored(), v.rule), lambda rule, residuals: VJP(rule, residuals))


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


def _check_cotangents(rule: PullbackRule, out_ct: Any) -> list[Any]:
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
        if expected.explicit_sharding is not None and (
            expected.explicit_sharding.unreduced or expected.explicit_sharding.reduced
        ):
            dense = reshard_as(dense, expected.explicit_sharding)
        checked.append(Zero(expected) if expected.dtype == float0 else dense)
    return checked


_AN_INTEGER = ", so that it must be float0 or an integer"


def _fits(actual: ShapedArray, expected: ShapedArray) -> bool:
    """Whether a cotangent has the expected type, or converts to it: any does to float0, a Python number to its kind."""
    if actual.shape != expected.shape or expected.dtype == float0:
        return actual.shape == expected.shape
    wider = actual.weak_type and (actual.dtype.kind != "c" or expected.dtype.kind == "c")
    return fits(actual, expected) or wider
