"""How a function of a distribution is declared: its formula, of arrays that have one inexact dtype.

    @distribution
    def logpdf(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        \"""…\"""

The operands, of any real dtypes and shapes that broadcast, are promoted together; called eagerly it is one program.
"""
from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any, TypeVar

from xlamini import numpy as jnp
from xlamini.core import aval_of
from xlamini.core.wrapping import named_as
from xlamini.nn import log1mexp
from xlamini.numpy.arguments import as_operand
from xlamini.primitives import convert, promoted_inexact_dtypes
from xlamini.runtime import Array
from xlamini.staging import composite
from xlamini.transforms.custom.custom_jvp import custom_jvp
from xlamini.typing import ArrayLike

F = TypeVar("F", bound=Callable[..., Any])
Formula = Callable[[Any], Any]


def distribution(formula: F) -> F:
    """Decorator of a formula: promotes all its operands, also those that are not given."""
    return _promoting(formula, lambda out, given: out)


def counting(formula: F) -> F:
    """The same for a distribution of counts: the result is weakly typed only if the first operand is."""
    return _promoting(formula, lambda out, given: convert(out, out.dtype, out.weak_type and aval_of(given).weak_type))


# --- families of location `loc` and scale `scale`: formulas of `z = (x - loc) / scale`


def of_standardized(formula: Formula) -> Callable[..., Array]:
    """Decorator of a formula of z."""

    @distribution
    @named_as(formula)
    def function(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        return formula(_standardized(x, loc, scale))

    return function


def log_density(formula: Formula) -> Callable[..., Array]:
    """Decorator of the logarithm of the density of z: that of x is less by the logarithm of the scale."""

    @distribution
    @named_as(formula)
    def function(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        return formula(_standardized(x, loc, scale)) - jnp.log(scale)

    return function


def density(formula: Formula) -> Callable[..., Array]:
    """Decorator of the logarithm of the density of z: the density of x."""

    @distribution
    @named_as(formula)
    def function(x: ArrayLike, loc: ArrayLike = 0, scale: ArrayLike = 1) -> Array:
        return jnp.exp(formula(_standardized(x, loc, scale)) - jnp.log(scale))

    return function


def _standardized(x: Any, loc: Any, scale: Any) -> Any:
    return (x - loc) / scale


# --- parts of formulas


def inside(where: Any, x: Any, other: Any = 0.5) -> Any:
    """`x` where it is in the domain of a formula, and elsewhere a number that is: so its derivative is finite."""
    return jnp.where(where, x, other)


def finite(z: Any) -> Any:
    """z, where infinite a number whose density is 0 as well: the slope of `exp` there, 0, meets no infinite one."""
    return jnp.where(abs(z) == jnp.inf, 1e4, z)


@custom_jvp
def nothing(y: Any, slope: Any) -> Any:
    """0, whose derivative in y is `slope`, which may be infinite."""
    return jnp.zeros(jnp.broadcast_shapes(jnp.shape(y), jnp.shape(slope)), aval_of(y).dtype)


nothing.defjvps(lambda tangent, out, y, slope: tangent * slope, None)


def slope_at_0(a: Any, of_1: Any, of_2: Any) -> Any:
    """The slope of a density that begins as `y ** (a - 1)`, given those for a = 1 and a = 2."""
    other = jnp.where(a > 2, 0.0, jnp.where(a > 1, jnp.inf, -jnp.inf))
    return jnp.where(a == 1, of_1, jnp.where(a == 2, of_2, other))


def without_overflow(z: Any) -> Any:
    """z, up to where `exp(z)` overflows: what is made of `exp(-exp(z))` is constant beyond, and its slope is 0."""
    highest = 0.99 * math.log(float(jnp.finfo(z.dtype).max))
    return jnp.where(z > highest, highest, z)


def log_of_rest(z: Any) -> Any:
    """`log(1 - exp(-exp(z)))`, which goes to z where `exp(z)` is nothing beside 1."""
    z = without_overflow(z)
    thin = z < -20
    return jnp.where(thin, z - jnp.exp(z) / 2, log1mexp(jnp.exp(jnp.where(thin, 0.0, z))))


def _promoting(formula: F, finish: Callable[[Any, Any], Any]) -> F:
    signature = inspect.signature(formula)
    name = f"{formula.__module__.rpartition('.')[2]}.{formula.__name__}"

    @functools.wraps(formula)
    def function(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        operands = [as_operand(name, x) for x in bound.args]
        return finish(formula(*promoted_inexact_dtypes(*operands)), operands[0])

    return composite()(function)  # type: ignore[return-value]
