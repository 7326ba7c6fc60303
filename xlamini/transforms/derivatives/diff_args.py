"""The arguments that a derivative differentiates (`argnums`): validated, and traced as the only inputs."""
from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from xlamini.core import Tracer, Values, flatten, flatten_from_user, is_differentiable, unflatten
from xlamini.core.program.avals import is_several
from xlamini.core.program.mutable_values import first_holder
from xlamini.runtime import ArrayImpl
from xlamini.staging import (
    ArgNames,
    Cells,
    Trace,
    check_callable,
    checked_avals,
    has_refs,
    name_of,
    rebuilt,
    replaced,
    retry_with_refs,
    store,
    values_of,
)
from xlamini.staging.trace.ref_threading import run_with
from xlamini.staging.trace.tracing import kind_of_trace, trace
from xlamini.transforms.derivatives.saved_args import bool_leaves

if TYPE_CHECKING:
    from xlamini.core.program.avals import ShapedArray
    from xlamini.core.pytree.nodes import PyTreeDef


Argnums = int | Sequence[int]


class DiffArgs:
    """The flat arguments `argnums` of a call, and the function with all other arguments fixed."""

    avals: list[ShapedArray]
    fun_name: str
    what: str
    leaves: list[Any]
    tree: PyTreeDef

    def __init__(
        self, fun: Callable[..., Any], argnums: Argnums, args: Values, kwargs: dict[str, Any], what: str
    ):
        check_callable(what, fun)
        self.what, self.fun_name = what, name_of(fun)
        self.single: bool = not is_several(argnums)
        chosen: Any = (argnums,) if self.single else tuple(argnums)  # type: ignore[arg-type]
        self.positions: list[int] = [self._position(i, len(args)) for i in chosen]
        if len({*self.positions}) < len(chosen):
            raise TypeError(f"{what}: argnums {argnums!r} names an argument twice; name each once")
        chosen_args = tuple(args[i] for i in self.positions)
        self.leaves, self.tree = flatten_from_user(chosen_args)
        if has_refs(self.leaves):
            raise TypeError(
                f"{what}: an argument of {self.fun_name} to differentiate is {first_holder(self.leaves).noun}, which "
                "has no gradient of its own; that of a ref is accumulated into a ref: write "
                "xlamini.vjp(f, ref)[1].with_refs(grad_ref)(cotangent); else differentiate by the value"
            )
        self.in_tree: PyTreeDef = flatten((chosen_args, {}))[1]
        self._fun, self._args, self._kwargs = fun, args, kwargs
        self._along: list[Any] = []
        self._tree_along: Any = None
        self.names: ArgNames = ArgNames(fun, self.in_tree, self.positions)
        self.avals = checked_avals(self.leaves, self.names, self.fun_name, ", or choose other argnums")

    def _position(self, argnum: Any, count: int) -> int:
        try:
            argnum = operator.index(argnum)
        except TypeError:
            raise TypeError(f"{self.what}: argnums must be an int or a tuple of ints, got {argnum!r}") from None
        if not -count <= argnum < count:
            raise TypeError(
                f"{self.what}: argnums {argnum} names no positional argument: {self.fun_name} was called with "
                f"{count}; pass the argument by position, not by keyword"
            )
        return argnum % count

    def of_chosen(self, *chosen: Any) -> Any:
        """Call the function with these chosen arguments; the other arguments are fixed."""
        return self._fun(*replaced(self._args, self.positions, chosen), **self._kwargs)

    def trace(self, has_aux: bool) -> Trace:
        """Trace the function of the chosen arguments, with their values, so that Python control flow may read them.

        The traced function returns a pair: the output, and the arrays of the auxiliary data; see `split`.
        """
        return retry_with_refs(functools.partial(self._trace, ()), self._trace, has_aux)

    def _trace(self, cells: Cells, has_aux: bool) -> Trace:
        self._cells, values = cells, values_of(cells)

        def paired(*chosen: Any) -> tuple[Any, list[Any]]:
            out, last = run_with(cells, values, self.of_chosen, *chosen)
            out, aux = split_aux(out, self.what, self.fun_name) if has_aux else (out, None)
            self._along, self._tree_along = flatten_from_user((aux, last))
            return out, [x for x in self._along if _is_array(x)]

        return trace(
            paired, self.in_tree, self.avals, self.leaves, self.names, self.fun_name, reuse_equal=True,
            derivative_by=self.what, kind=kind_of_trace(),
        )

    def split(self, traced: Trace, leaves: Values) -> tuple[Any, Any]:
        """The function's output and its auxiliary data; also stores the new values of the refs that it wrote.

        The traced program computes only the arrays of the auxiliary data; other leaves are those of the trace.
        """
        out, arrays = rebuilt(traced.out_tree, leaves)
        remaining = iter(arrays)
        along = unflatten(self._tree_along, [next(remaining) if _is_array(x) else x for x in self._along])
        store(self._cells, along[1])
        return out, along[0]

    def nonzero(self, traced: Trace, in_nzs: Any = None) -> tuple[bool, ...]:
        """A mask of the jaxpr's inputs with tangents: the chosen differentiable leaves; captured values have none."""
        return (False,) * len(traced.captured) + self.with_tangents(in_nzs)

    def with_tangents(self, in_nzs: Any) -> tuple[bool, ...]:
        """A mask of the leaves with tangents; `in_nzs` may be a bool, or a tree of them, False where there is none."""
        if in_nzs is None:
            return tuple(map(is_differentiable, self.avals))
        given = bool_leaves(f"{self.what}: in_nzs", in_nzs, self.tree)
        return tuple(nz and is_differentiable(a) for nz, a in zip(given, self.avals, strict=True))

    def operands(self, traced: Trace) -> list[Any]:
        return [*traced.captured, *self.leaves]


def _is_array(x: Any) -> bool:
    return type(x) is Tracer or isinstance(x, ArrayImpl)


def split_aux(out: Any, what: str, fun_name: str) -> tuple[Any, Any]:
    """The pair (output, aux) that a function with `has_aux=True` returned; TypeError for anything else."""
    if not isinstance(out, tuple | list) or len(out) != 2:
        raise TypeError(
            f"{what}: with has_aux=True {fun_name} must return a pair (output, aux), but it returned "
            f"a {type(out).__name__}"
        )
    return out[0], out[1]
