"""custom_vjp: a function with a derivative, for reverse mode, that the user writes."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core.edges import edge_methods
from xlamini.core.pytree import flatten_from_user, treedef_children
from xlamini.core.tracer import state
from xlamini.transforms.arguments import ArgNames, avals_of, check_callable, check_values, name_of
from xlamini.transforms.custom.custom_vjp_call import custom_vjp_call_p
from xlamini.transforms.custom.vjp_rules import (
    BackwardName,
    Signature,
    UserForward,
    UserRules,
    values_known,
    with_fixed,
)
from xlamini.transforms.statics import Selected
from xlamini.transforms.tracing import rebuilt, trace


class custom_vjp:
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

    def __init__(
        self,
        fun: Callable[..., Any],
        nondiff_argnums: Sequence[int] = (),
        nondiff_argnames: Sequence[str] = (),
    ):
        check_callable("custom_vjp", fun)
        functools.update_wrapper(self, fun)
        self.fun, self._name = fun, name_of(fun)
        self._nondiff = Selected("nondiff", fun, nondiff_argnums, nondiff_argnames, "custom_vjp").nums
        self._rules: UserRules | None = None

    def defvjp(
        self,
        fwd: Callable[..., tuple[Any, Any]],
        bwd: Callable[..., Sequence[Any]],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Set the rules: `fwd(*args) -> (output, residuals)` and `bwd(residuals, cotangent) -> cotangents of args`.

        `fwd` takes what the function takes. Residuals are arrays, numbers, or containers of them. `bwd` gets the
        arguments in `nondiff_argnums` first, and returns a tuple with one entry for each of the others: a cotangent of
        its structure, shapes and dtypes, or None for zeros. Both are traced and checked when a derivative is first
        taken. With `symbolic_zeros` fwd gets objects with the fields `value` and `perturbed` in place of its
        arguments' leaves, and cotangents that are zero for sure come to bwd as `SymbolicZero`. With `optimize_remat`
        `checkpoint` runs the function itself, not fwd, where no residuals are kept.
        """
        check_callable("custom_vjp: defvjp", fwd)
        check_callable("custom_vjp: defvjp", bwd)
        self._rules = UserRules(fwd, bwd, symbolic_zeros, optimize_remat)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._rules is None:
            raise AttributeError(
                f"custom_vjp: {self._name} has no rules yet; set them before it is called, with "
                f"{self._name}.defvjp(fwd, bwd)"
            )
        full = self._positional(args, kwargs)
        return self.fun(*full) if state.builder is None else self._staged(full)

    def _positional(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """All arguments in their places, those left out with their defaults."""
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self._name}: {error}") from None
        bound.apply_defaults()
        if bound.kwargs:
            raise TypeError(
                f"custom_vjp: {self._name} has the keyword-only argument {next(iter(bound.kwargs))!r}, but rules take "
                "all arguments by position; make it a positional one"
            )
        return bound.args

    @functools.cached_property
    def _signature(self) -> inspect.Signature:
        return inspect.signature(self.fun)

    def _staged(self, args: Sequence[Any]) -> Any:
        """The call as an equation of the program being traced."""
        fixed = tuple((i, args[i]) for i in self._nondiff if i < len(args))
        positions = [i for i in range(len(args)) if i not in dict(fixed)]
        leaves, in_tree = flatten_from_user((tuple(args[i] for i in positions), {}))
        names = ArgNames(self.fun, in_tree, positions)
        avals = avals_of(leaves, names, self._name, ", or mark it with nondiff_argnums")
        check_values(leaves, names, self._name)
        traced = trace(lambda *own: self.fun(*with_fixed(fixed, own)), in_tree, avals, leaves, names, self._name)
        args_tree = treedef_children(in_tree)[0]
        call = Signature(
            self._name, args_tree, tuple(avals), traced.out_tree, tuple(traced.jaxpr.out_avals), names
        )
        outs = custom_vjp_call_p.bind(
            *traced.captured,
            *leaves,
            name=self._name,
            call_jaxpr=traced.jaxpr,
            num_consts=len(traced.captured),
            **self._params(call, fixed, leaves),
        )
        return rebuilt(traced.out_tree, outs)

    def _params(self, call: Signature, fixed: Sequence[tuple[int, Any]], leaves: Sequence[Any]) -> dict[str, Any]:
        assert self._rules is not None
        rules = self._rules._replace(fixed=tuple(fixed))
        return {
            "fwd": UserForward(rules, call, values_known(leaves)),
            "bwd": BackwardName(rules.bwd),
            "symbolic_zeros": rules.symbolic_zeros,
            "optimize_remat": rules.optimize_remat,
            "jvp": None,
        }


edge_methods(custom_vjp)
