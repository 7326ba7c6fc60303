"""Rules that follow from others, for users to assign in pairs: `lin, linearized = linearize_from_jvp`.

A class with such rules is the same as one without them: each transformation asks for what the user wrote himself, and
derives the rest. They are functions too, so that another rule of his may call `linearize_from_jvp.lin`.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NamedTuple, NoReturn, TypeVar

from xlamini.core import Zero, is_zero, tangent_aval, tree_map
from xlamini.core.program.hi_types import as_aval
from xlamini.extend.tangents import instantiated
from xlamini.transforms.derivatives.vjp import vjp

F = TypeVar("F", bound=Callable[..., Any])


class LinearizeRules(NamedTuple):
    """The rules of `linearize`."""

    lin: Callable[..., Any]
    linearized: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        _not_one_rule(self)


class ReverseRules(NamedTuple):
    """The rules of reverse mode."""

    vjp_fwd: Callable[..., Any]
    vjp_bwd_retval: Callable[..., Any]

    def __call__(self, *args: Any, **kwargs: Any) -> NoReturn:
        _not_one_rule(self)


def _not_one_rule(pair: LinearizeRules | ReverseRules) -> NoReturn:
    raise TypeError(f"this is a pair of rules; write `{', '.join(pair._fields)} = ...` in the class")


def _derived(*rules: str) -> Callable[[F], F]:
    def mark(fun: F) -> F:
        fun.derived_from = rules  # type: ignore[attr-defined]
        return fun

    return mark


@_derived("jvp")
def _as_residuals(self: Any, nzs_in: Any, *primals: Any) -> tuple[Any, Any]:
    """`lin` and `vjp_fwd` where `jvp` is written: the residuals are the arguments."""
    return self(*primals), primals


@_derived("jvp")
def _tangent_of_jvp(self: Any, residuals: Any, *tangents: Any) -> Any:
    return self.jvp(residuals, tangents)[1]


@_derived("jvp")
def _transposed_jvp(self: Any, primals: Any, ct: Any) -> Any:
    return _transposed(self, lambda *tangents: self.jvp(primals, tangents)[1], ct)


@_derived("lin", "linearized")
def _fwd_from_lin(self: Any, nzs_in: Any, *primals: Any) -> tuple[Any, ...]:
    out, residuals, nonzero, structured = results_of(self.lin(nzs_in, *primals))
    return out, (residuals, structured), nonzero


@_derived("lin", "linearized")
def _transposed_linearized(self: Any, residuals: Any, ct: Any) -> Any:
    kept, structured = residuals
    return _transposed(self, lambda *tangents: self.linearized(kept, *structured, *tangents), ct)


linearize_from_jvp: Final = LinearizeRules(_as_residuals, _tangent_of_jvp)
"""`lin` and `linearized` from `jvp`, which must be linear in the tangents.

>>> from xlamini.experimental.hijax import HiPrim
>>> class Square(HiPrim):
...     def __init__(self, x):
...         self.in_avals, self.out_aval, self.params = (x,), x, {}
...         super().__init__()
...     def expand(self, x):
...         return x * x
...     def jvp(self, primals, tangents):
...         return self(*primals), 2 * primals[0] * tangents[0]
...     lin, linearized = linearize_from_jvp
>>> square = Square(xlamini.typeof(3.0))
>>> out, residuals = square.lin((True,), 3.0)
>>> square.linearized(residuals, 1.0), xlamini.linearize(square, 3.0)[1](1.0)
(6.0, Array(6., dtype=float32, weak_type=True))
"""
vjp_from_jvp: Final = ReverseRules(_as_residuals, _transposed_jvp)
"""`vjp_fwd` and `vjp_bwd_retval` from `jvp`.

>>> from xlamini.experimental.hijax import HiPrim
>>> class Square(HiPrim):
...     def __init__(self, x):
...         self.in_avals, self.out_aval, self.params = (x,), x, {}
...         super().__init__()
...     def expand(self, x):
...         return x * x
...     def jvp(self, primals, tangents):
...         return self(*primals), 2 * primals[0] * tangents[0]
...     vjp_fwd, vjp_bwd_retval = vjp_from_jvp
>>> square = Square(xlamini.typeof(3.0))
>>> square.vjp_bwd_retval((3.0,), 1.0), xlamini.grad(square)(3.0)
((Array(6., dtype=float32, weak_type=True),), Array(6., dtype=float32, weak_type=True))
"""
vjp_from_lin: Final = ReverseRules(_fwd_from_lin, _transposed_linearized)
"""`vjp_fwd` and `vjp_bwd_retval` from `lin` and `linearized`.

>>> from xlamini.experimental.hijax import HiPrim
>>> class Square(HiPrim):
...     def __init__(self, x):
...         self.in_avals, self.out_aval, self.params = (x,), x, {}
...         super().__init__()
...     def expand(self, x):
...         return x * x
...     def lin(self, nzs_in, x):
...         return self(x), 2 * x
...     def linearized(self, slope, t):
...         return slope * t
...     vjp_fwd, vjp_bwd_retval = vjp_from_lin
>>> xlamini.grad(Square(xlamini.typeof(3.0)))(3.0)
Array(6., dtype=float32, weak_type=True)
"""


@_derived("lin", "linearized")
def jvp_from_lin(self: Any, primals: Any, tangents: Any) -> tuple[Any, Any]:
    """`jvp` where `lin` and `linearized` are written.

    >>> from xlamini.experimental.hijax import HiPrim
    >>> class Square(HiPrim):
    ...     def __init__(self, x):
    ...         self.in_avals, self.out_aval, self.params = (x,), x, {}
    ...         super().__init__()
    ...     def expand(self, x):
    ...         return x * x
    ...     def lin(self, nzs_in, x):
    ...         return self(x), 2 * x
    ...     def linearized(self, slope, t):
    ...         return slope * t
    ...     jvp = jvp_from_lin
    >>> xlamini.jvp(Square(xlamini.typeof(3.0)), (3.0,), (1.0,))
    (Array(9., dtype=float32, weak_type=True), Array(6., dtype=float32, weak_type=True))
    """
    if hasattr(type(self).lin, "derived_from"):
        self._missing("jvp(self, primals, tangents)", "rules that are derived from each other")
    nonzero = tree_map(lambda t: not is_zero(t), tuple(tangents), is_leaf=is_zero)
    out, residuals, _, structured = results_of(self.lin(nonzero, *primals))
    return out, self.linearized(residuals, *structured, *tangents)


def results_of(found: Any) -> tuple[Any, Any, Any, tuple[Any, ...]]:
    """What a rule returned that may leave out the last: output, residuals, which outputs have a tangent, and a tuple
    of the structured residuals, empty if there are none."""
    out, residuals, *rest = found
    return out, residuals, rest[0] if rest else True, tuple(rest[1:])


def _transposed(self: Any, linear: Callable[..., Any], ct: Any) -> Any:
    """The cotangents of the arguments of a function that is linear in the tangents of a call's arguments."""
    origin = tree_map(lambda ty: instantiated(Zero(tangent_aval(as_aval(ty)))), tuple(self.in_avals))
    return vjp(lambda *tangents: dense(linear(*tangents)), *origin)[1](dense(ct))


def dense(tree: Any) -> Any:
    """A tree of tangents or cotangents with arrays in place of symbolic zeros."""
    return tree_map(instantiated, tree, is_leaf=is_zero)
