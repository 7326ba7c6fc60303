"""Rules that follow from others, for users to assign: `lin = linearize_from_jvp`.

A class with such rules is the same as one without them: each transformation asks for what the user wrote himself, and
derives the rest. They are functions too, so that another rule of his may call them.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from xlamini.core import Zero, is_zero, tangent_aval, tree_map
from xlamini.core.hi_types import as_aval
from xlamini.extend.tangents import instantiated
from xlamini.transforms.derivatives.vjp import vjp

F = TypeVar("F", bound=Callable[..., Any])


def _derived(*rules: str) -> Callable[[F], F]:
    def mark(fun: F) -> F:
        fun.derived_from = rules  # type: ignore[attr-defined]
        return fun

    return mark


@_derived("jvp")
def linearize_from_jvp(self: Any, nzs_in: Any, *primals: Any) -> tuple[Any, Any]:
    """`lin` where `jvp` is written, else NotImplementedError, as for all rules here; the residuals are the arguments.

    >>> from xlamini.experimental.hijax import VJPHiPrimitive
    >>> class Square(VJPHiPrimitive):
    ...     def __init__(self, x):
    ...         self.in_avals, self.out_aval, self.params = (x,), x, {}
    ...         super().__init__()
    ...     def expand(self, x):
    ...         return x * x
    ...     def jvp(self, primals, tangents):
    ...         return self(*primals), 2 * primals[0] * tangents[0]
    ...     lin, linearized = linearize_from_jvp, apply_derived_linearization
    >>> square = Square(xlamini.typeof(3.0))
    >>> square.lin((True,), 3.0), xlamini.linearize(square, 3.0)[1](1.0)
    ((9.0, (3.0,)), Array(6., dtype=float32, weak_type=True))
    """
    return self(*primals), primals


@_derived("jvp")
def apply_derived_linearization(self: Any, residuals: Any, *tangents: Any) -> Any:
    """`linearized` where `jvp` is written and `lin` is `linearize_from_jvp`.

    >>> from xlamini.experimental.hijax import VJPHiPrimitive
    >>> class Square(VJPHiPrimitive):
    ...     def __init__(self, x):
    ...         self.in_avals, self.out_aval, self.params = (x,), x, {}
    ...         super().__init__()
    ...     def expand(self, x):
    ...         return x * x
    ...     def jvp(self, primals, tangents):
    ...         return self(*primals), 2 * primals[0] * tangents[0]
    ...     lin, linearized = linearize_from_jvp, apply_derived_linearization
    >>> square = Square(xlamini.typeof(3.0))
    >>> out, residuals = square.lin((True,), 3.0)
    >>> square.linearized(residuals, 1.0)
    6.0
    """
    return self.jvp(residuals, tangents)[1]


@_derived("jvp")
def vjp_fwd_from_jvp(self: Any, nzs_in: Any, *primals: Any) -> tuple[Any, Any]:
    """`vjp_fwd` where `jvp` is written; the residuals are the arguments.

    >>> from xlamini.experimental.hijax import VJPHiPrimitive
    >>> class Square(VJPHiPrimitive):
    ...     def __init__(self, x):
    ...         self.in_avals, self.out_aval, self.params = (x,), x, {}
    ...         super().__init__()
    ...     def expand(self, x):
    ...         return x * x
    ...     def jvp(self, primals, tangents):
    ...         return self(*primals), 2 * primals[0] * tangents[0]
    ...     vjp_fwd, vjp_bwd_retval = vjp_fwd_from_jvp, transpose_jvp
    >>> square = Square(xlamini.typeof(3.0))
    >>> square.vjp_fwd((True,), 3.0), xlamini.grad(square)(3.0)
    ((9.0, (3.0,)), Array(6., dtype=float32, weak_type=True))
    """
    return self(*primals), primals


@_derived("jvp")
def transpose_jvp(self: Any, primals: Any, ct: Any) -> Any:
    """`vjp_bwd_retval` where `jvp` is written and `vjp_fwd` is `vjp_fwd_from_jvp`.

    >>> from xlamini.experimental.hijax import VJPHiPrimitive
    >>> class Square(VJPHiPrimitive):
    ...     def __init__(self, x):
    ...         self.in_avals, self.out_aval, self.params = (x,), x, {}
    ...         super().__init__()
    ...     def expand(self, x):
    ...         return x * x
    ...     def jvp(self, primals, tangents):
    ...         return self(*primals), 2 * primals[0] * tangents[0]
    ...     vjp_fwd, vjp_bwd_retval = vjp_fwd_from_jvp, transpose_jvp
    >>> Square(xlamini.typeof(3.0)).vjp_bwd_retval((3.0,), 1.0)
    (Array(6., dtype=float32, weak_type=True),)
    """
    return _transposed(self, lambda *tangents: self.jvp(primals, tangents)[1], ct)


@_derived("lin", "linearized")
def vjp_fwd_from_lin(self: Any, nzs_in: Any, *primals: Any) -> tuple[Any, Any]:
    """`vjp_fwd` where `lin` and `linearized` are written.

    >>> from xlamini.experimental.hijax import VJPHiPrimitive
    >>> class Square(VJPHiPrimitive):
    ...     def __init__(self, x):
    ...         self.in_avals, self.out_aval, self.params = (x,), x, {}
    ...         super().__init__()
    ...     def expand(self, x):
    ...         return x * x
    ...     def lin(self, nzs_in, x):
    ...         return self(x), 2 * x
    ...     def linearized(self, slope, t):
    ...         return slope * t
    ...     vjp_fwd, vjp_bwd_retval = vjp_fwd_from_lin, transpose_linearized
    >>> square = Square(xlamini.typeof(3.0))
    >>> square.vjp_fwd((True,), 3.0), xlamini.grad(square)(3.0)
    ((9.0, 6.0), Array(6., dtype=float32, weak_type=True))
    """
    return self.lin(nzs_in, *primals)


@_derived("lin", "linearized")
def transpose_linearized(self: Any, residuals: Any, ct: Any) -> Any:
    """`vjp_bwd_retval` where `lin` and `linearized` are written and `vjp_fwd` is `vjp_fwd_from_lin`.

    >>> from xlamini.experimental.hijax import VJPHiPrimitive
    >>> class Square(VJPHiPrimitive):
    ...     def __init__(self, x):
    ...         self.in_avals, self.out_aval, self.params = (x,), x, {}
    ...         super().__init__()
    ...     def expand(self, x):
    ...         return x * x
    ...     def lin(self, nzs_in, x):
    ...         return self(x), 2 * x
    ...     def linearized(self, slope, t):
    ...         return slope * t
    ...     vjp_fwd, vjp_bwd_retval = vjp_fwd_from_lin, transpose_linearized
    >>> Square(xlamini.typeof(3.0)).vjp_bwd_retval(6.0, 1.0)
    (Array(6., dtype=float32, weak_type=True),)
    """
    return _transposed(self, lambda *tangents: self.linearized(residuals, *tangents), ct)


@_derived("lin", "linearized")
def jvp_from_lin(self: Any, primals: Any, tangents: Any) -> tuple[Any, Any]:
    """`jvp` where `lin` and `linearized` are written.

    >>> from xlamini.experimental.hijax import VJPHiPrimitive
    >>> class Square(VJPHiPrimitive):
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
    nonzero = tree_map(lambda t: not is_zero(t), tuple(tangents), is_leaf=is_zero)
    out, residuals = self.lin(nonzero, *primals)
    return out, self.linearized(residuals, *tangents)


def _transposed(self: Any, linear: Callable[..., Any], ct: Any) -> Any:
    """The cotangents of the arguments of a function that is linear in the tangents of a call's arguments."""
    origin = tree_map(lambda ty: instantiated(Zero(tangent_aval(as_aval(ty)))), tuple(self.in_avals))
    dense = lambda *tangents: tree_map(instantiated, linear(*tangents), is_leaf=is_zero)  # noqa: E731
    return vjp(dense, *origin)[1](tree_map(instantiated, ct, is_leaf=is_zero))
