"""Which arguments a transformation differentiates: taken out, checked, and traced as the only inputs."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from xlamini.core.pytree import flatten, flatten_from_user, unflatten
from xlamini.core.tangents import is_differentiable
from xlamini.core.tracer import Tracer
from xlamini.runtime.put import ArrayImpl
from xlamini.transforms.arguments import ArgNames, avals_of, check_callable, check_values, name_of
from xlamini.transforms.tracing import Trace, trace

Argnums = int | Sequence[int]


class DiffArgs:
    """The arguments `argnums` of a call, flat, with a function of them alone."""

    def __init__(
        self, fun: Callable[..., Any], argnums: Argnums, args: Sequence[Any], kwargs: dict[str, Any], what: str
    ):
        check_callable(what, fun)
        self.what, self.fun_name = what, name_of(fun)
        self.single = isinstance(argnums, int)
        chosen = (argnums,) if isinstance(argnums, int) else tuple(argnums)
        self.positions = [self._position(i, len(args)) for i in chosen]
        if len({*self.positions}) < len(chosen):
            raise TypeError(f"{what}: argnums {argnums!r} names an argument twice; name each once")
        chosen_args = tuple(args[i] for i in self.positions)
        self.leaves, self.tree = flatten_from_user(chosen_args)
        self.in_tree = flatten((chosen_args, {}))[1]
        self._fun, self._args, self._kwargs = fun, list(args), kwargs
        self.names = ArgNames(fun, self.in_tree, self.positions)
        self.avals = avals_of(self.leaves, self.names, self.fun_name, ", or choose other argnums")
        check_values(self.leaves, self.names, self.fun_name)

    def _position(self, argnum: int, count: int) -> int:
        if not isinstance(argnum, int):
            raise TypeError(f"{self.what}: argnums must be an int or a tuple of ints, got {argnum!r}")
        if not -count <= argnum < count:
            raise TypeError(
                f"{self.what}: argnums {argnum} names no positional argument: {self.fun_name} was called with "
                f"{count}; pass the argument by position, not by keyword"
            )
        return argnum % count

    def of_chosen(self, *chosen: Any) -> Any:
        """The function of the chosen arguments alone."""
        args = list(self._args)
        for position, value in zip(self.positions, chosen, strict=True):
            args[position] = value
        return self._fun(*args, **self._kwargs)

    def trace(self, has_aux: bool = False) -> Trace:
        """Trace the function of the chosen arguments; Python may ask for their numbers.

        With `has_aux` its output is a pair, the second the arrays in the auxiliary data; `aux` puts these together.
        """
        fun = self._with_arrays_of_aux if has_aux else self.of_chosen
        return trace(fun, self.in_tree, self.avals, self.leaves, self.names, self.fun_name)

    def _with_arrays_of_aux(self, *chosen: Any) -> tuple[Any, list[Any]]:
        out, aux = split_aux(self.of_chosen(*chosen), self.what, self.fun_name)
        self._aux_leaves, self._aux_tree = flatten_from_user(aux)
        return out, [x for x in self._aux_leaves if _is_array(x)]

    def aux(self, arrays: Iterable[Any]) -> Any:
        """The auxiliary data: the arrays among them, and all else as the function returned it."""
        given = iter(arrays)
        return unflatten(self._aux_tree, [next(given) if _is_array(x) else x for x in self._aux_leaves])

    def nonzero(self, traced: Trace) -> tuple[bool, ...]:
        """Which inputs of the traced jaxpr have a tangent: the chosen leaves that can have one, no captured value."""
        return (False,) * len(traced.captured) + tuple(is_differentiable(a) for a in self.avals)

    def operands(self, traced: Trace) -> list[Any]:
        return [*traced.captured, *self.leaves]


def _is_array(x: Any) -> bool:
    return type(x) is Tracer or isinstance(x, ArrayImpl)


def split_aux(out: Any, what: str, fun_name: str) -> tuple[Any, Any]:
    """The two parts of what a function with `has_aux=True` returns."""
    if not isinstance(out, tuple | list) or len(out) != 2:
        raise TypeError(
            f"{what}: with has_aux=True {fun_name} must return a pair (output, aux), but it returned "
            f"a {type(out).__name__}"
        )
    return out[0], out[1]
