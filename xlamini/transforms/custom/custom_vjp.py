"""custom_vjp: a function with a derivative, for reverse mode, that the user writes."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xlamini.core.api_boundary import edge_methods
from xlamini.staging.trace.arguments import check_callable
from xlamini.staging.trace.static_args import Names, Numbers
from xlamini.transforms.custom.closures import captured_names
from xlamini.transforms.custom.custom_vjp_call import custom_vjp_call_p
from xlamini.transforms.custom.customized import CustomCall, Customized
from xlamini.transforms.custom.user_jvp import UserJvp
from xlamini.transforms.custom.user_vjp import UserForward, UserRules
from xlamini.transforms.custom.vjp_rules import BackwardName


class custom_vjp(Customized):
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

    what, setter = "custom_vjp", "defvjp(fwd, bwd)"

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: Numbers = (), nondiff_argnames: Names = ()):
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self._vjp: UserRules | None = None
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
        self._vjp = UserRules(fwd, bwd, symbolic_zeros, optimize_remat)

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

    def _rules(self) -> list[Any]:
        return [rule for rule in (self._vjp, self._jvp) if rule is not None]

    def _staged(self, call: CustomCall) -> list[Any]:
        vjp = None if self._vjp is None else self._vjp._replace(fixed=call.fixed)
        return custom_vjp_call_p.bind(
            *call.operands,
            name=call.name,
            call_jaxpr=call.jaxpr,
            fwd=None if vjp is None else UserForward(vjp, call),
            bwd=None if vjp is None else BackwardName(vjp.bwd),
            jvp=None if self._jvp is None else UserJvp(self.what, self._jvp, self._jvp_zeros, call),
            captured=captured_names(self.fun, call.traced.captured),
            num_closed=len(call.closed),
            symbolic_zeros=vjp is not None and vjp.symbolic_zeros,
            optimize_remat=vjp is not None and vjp.optimize_remat,
        )


edge_methods(custom_vjp)
