"""custom_vjp: a function with a derivative, for reverse mode, that the user writes."""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core.edges import edge_methods
from xlamini.core.tracer import state
from xlamini.transforms.arguments import check_callable, name_of
from xlamini.transforms.custom.custom_vjp_call import custom_vjp_call_p
from xlamini.transforms.custom.jvp_rule import UserJvp
from xlamini.transforms.custom.rules import (
    captured_names,
    closed_over,
    positional,
    signature_of,
    traced_call,
    with_ignored,
)
from xlamini.transforms.custom.vjp_rules import BackwardName, UserForward, UserRules
from xlamini.transforms.statics import Selected
from xlamini.transforms.tracing import rebuilt


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
        self._jvp: Callable[..., Any] | None = None
        self._jvp_zeros = False

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

    def defjvp(self, jvp: Callable[..., tuple[Any, Any]], symbolic_zeros: bool = False) -> Callable[..., Any]:
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

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._rules is None and self._jvp is None:
            raise AttributeError(
                f"custom_vjp: {self._name} has no rules yet; set them before it is called, with "
                f"{self._name}.defvjp(fwd, bwd)"
            )
        full = positional("custom_vjp", name_of(self.fun), self._signature, args, kwargs)
        return self.fun(*full) if state.builder is None else self._staged(full)

    @functools.cached_property
    def _signature(self) -> inspect.Signature | None:
        return signature_of(self.fun)

    def _staged(self, args: Sequence[Any]) -> Any:
        """The call as an equation of the program being traced."""
        call = traced_call("custom_vjp", self.fun, self._nondiff, args)
        traced = call.traced
        fixed = tuple(zip((n for n in self._nondiff if n < len(args)), call.fixed, strict=True))
        rules = None if self._rules is None else self._rules._replace(fixed=fixed)
        closed = closed_over(rules, self._jvp, call.fixed)
        outs = custom_vjp_call_p.bind(
            *traced.captured,
            *closed,
            *call.leaves,
            name=call.name,
            call_jaxpr=with_ignored(traced.jaxpr, len(traced.captured), [t.aval for t in closed]),
            fwd=None if rules is None else UserForward(rules, call, closed),
            bwd=None if rules is None else BackwardName(rules.bwd),
            jvp=None if self._jvp is None else UserJvp("custom_vjp", self._jvp, self._jvp_zeros, call, closed),
            captured=captured_names(self.fun, traced.captured),
            num_closed=len(closed),
            symbolic_zeros=rules is not None and rules.symbolic_zeros,
            optimize_remat=rules is not None and rules.optimize_remat,
        )
        return rebuilt(traced.out_tree, outs)


edge_methods(custom_vjp)
