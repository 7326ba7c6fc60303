"""The elementwise family: an operation states its StableHLO op and its partial derivative; the rest follows.

    @elementwise(hlo="stablehlo.exponential", accepts=FLOAT | COMPLEX)
    def exp(x):
        \"""Exponential, elementwise.\"""

    @exp.derivative
    def _(x, *, out):
        return out

Arity and parameters (keyword-only) come from the signature. Operands have one common shape, or none: a scalar
represents an array filled with it, which makes programs short; it is broadcast only when StableHLO is written. Axes of
size 1 broadcast likewise, between operands of one rank.
"""
from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar, overload

from xlamini.core import (
    Avals,
    Cost,
    Dims,
    MissingRule,
    Params,
    ShapedArray,
    ShapeError,
    Values,
    Zero,
    aval_of,
    is_differentiable,
    is_linear,
    is_zero,
    literal,
    scalar_type_of,
    tangent_aval,
    trim,
)
from xlamini.core.errors.frames import definition
from xlamini.core.program.checks import CARRIES_NAN, KEEPS_NAN
from xlamini.core.program.form import Form, Platform
from xlamini.core.program.primitive import ELEMENTWISE, PURE, REMATERIALIZABLE, Axis, Primitive
from xlamini.core.program.tangents import Linear
from xlamini.core.sharding.facet import broadcast_dimensions
from xlamini.core.sharding.partial_sums import IN_EACH, JOINTLY, Groups
from xlamini.primitives.base.broadcasting import (
    aligned,
    common_shape,
    spread,
    stretched,
    stretched_out,
    unbatched_shape,
)
from xlamini.primitives.base.dtype_kinds import ANY, BOOL, COMPLEX, FLOAT, NUMERIC, SIGNED, UNSIGNED, Kinds, kind_of
from xlamini.primitives.forms.cpu.math import formula
from xlamini.primitives.shape.shape import reshape, sum_over
from xlamini.runtime import Array

if TYPE_CHECKING:
    from xlamini.core.sharding.facet import Sharding


class Elementwise(Primitive):
    """An operation applied to each element; made by the decorator `elementwise`."""

    accepts: Kinds
    flops: int
    hlo: str | None
    on_cpu: formula | None

    traits: int = PURE | ELEMENTWISE
    sharding: Sharding = broadcast_dimensions()

    __name__: str
    __wrapped__: Callable[..., Any]

    def __init__(
        self, declaration: Callable[..., Any], *, hlo: str | None, accepts: Kinds, flops: int, on_cpu: formula | None
    ) -> None:
        functools.update_wrapper(self, declaration)
        self.hlo, self.accepts, self.flops, self.on_cpu = hlo, accepts, flops, on_cpu
        self.traits |= (flops <= 1) * REMATERIALIZABLE
        self.arity: int = declaration.__code__.co_argcount
        self.compute: Callable[..., Any] | None = None
        self.partials: Sequence[Callable[..., Any]] | None = None
        self.linear_rule: Callable[..., Any] | None = None
        if not accepts & (FLOAT | COMPLEX):
            self.lacks: Mapping[str, str] = {"jvp": "of integers only"}
        super().__init__(declaration.__name__)

    def __call__(self, *operands: Any, **params: Any) -> Array:
        try:
            if len(operands) != self.arity:
                operands, params = self.arguments(operands, params)
            return self.bind(*like_dtypes(operands), **params)
        except Exception as error:
            trim(error)
            raise

    def arguments(self, operands: Values, named: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Operands and parameters of a call, in which operands may be given by name."""
        signature = inspect.signature(self.__wrapped__)
        try:
            found = signature.bind(*operands, **named)
        except TypeError as error:
            raise TypeError(f"{self.name}({', '.join(signature.parameters)}): {error}") from None
        return found.args, found.kwargs

    # How the family's members say what is special about them.

    def formula(self, compute: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator: how an operation without `hlo` is computed, from operands in the shape of the result."""
        self.compute = compute
        return compute

    def derivative(self, partial: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator: the partial derivative of an operation of one operand, `partial(x, *, out)`."""
        return self.derivatives(partial)

    def derivatives(self, *partials: Callable[..., Any]) -> Callable[..., Any]:
        """The partial derivatives in each operand, each `partial(*operands, out=out)`; 0, 1 and -1 cost nothing.

        A partial derivative may also be a function of the tangent: its product with that tangent.
        """
        self.partials = partials
        return partials[0]

    def transposed(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """Decorator: `rule(ct, *operands)` gives the cotangent of each linear operand, None for the others."""
        self.linear_rule = rule
        return rule

    # The rules.

    def shape_rule(self, *avals: ShapedArray, **params: Any) -> ShapedArray:
        first = avals[0]
        if all(a is first for a in avals):
            self._check_kind(first)
            return self.result(first, **params)
        dtypes = {a.dtype for a in avals}
        shapes = {a.shape for a in avals if a.shape}
        if len(dtypes) > 1:
            raise TypeError(self._mismatch("dtypes differ", avals, "convert them with .astype first"))
        shape = common_shape(shapes)
        if shape is None:
            raise ShapeError(self._mismatch("shapes differ", avals, "broadcast them with broadcast_to first"))
        self._check_kind(first)
        return self.result(ShapedArray(shape, first.dtype, all(a.weak_type for a in avals)), **params)

    def result(self, aval: ShapedArray, **params: Any) -> ShapedArray:
        """The type of the result, from the common type of the operands."""
        return aval

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        out = self.bind(*primals, **params)
        aval = aval_of(out)
        if not is_differentiable(aval):
            return out, Zero(tangent_aval(aval))
        if self.partials is None:
            super().jvp(primals, tangents, **params)
        primals = [stretched(x, aval) for x in primals]
        slopes = [
            (partial(*primals, out=out, **params), t)
            for partial, t in zip(self.partials or (), tangents, strict=True)
            if type(t) is not Zero
        ]
        terms = [spread(_term(slope, t), aval) for slope, t in slopes if not (type(slope) is int and slope == 0)]
        return out, functools.reduce(add_any.bind, terms) if terms else Zero(aval)

    def transpose(self, ct: Any, *operands: Any, **params: Any) -> Values:
        if self.linear_rule is None:
            return list(super().transpose(ct, *operands, **params))
        cts = self.linear_rule(ct, *operands, **params)
        return [
            _gathered(c, x.aval) if is_linear(x) and c is not None else None
            for c, x in zip(cts, operands, strict=True)
        ]

    def batch(self, axis: Axis, operands: Values, dims: Dims, **params: Any) -> Any:
        placed = {(d, aval_of(x).shape) for x, d in zip(operands, dims, strict=True)} - {(None, ())}
        if len(placed) == 1:  # all equal, but for scalars
            return self.bind(*operands, **params), placed.pop()[0]
        shape = common_shape({unbatched_shape(x, d) for x, d in zip(operands, dims, strict=True)} - {()})
        assert shape is not None
        moved = [aligned(x, d, (axis.size, *shape)) for x, d in zip(operands, dims, strict=True)]
        return self.bind(*moved, **params), 0

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form | None:
        """By the formula for the CPU, or by that for all platforms."""
        (out,) = outs
        found = None if self.compute is None else Form(functools.partial(self.compute, **params))
        if self.on_cpu is not None and platform.name == "cpu" and kind_of(out.dtype) is FLOAT:
            found = self.on_cpu.form(self, out) or found
        return found and found._replace(compute=lambda *operands: found.compute(*[spread(x, out) for x in operands]))

    def lower(self, ctx: Any, *operands: Any, **params: Any) -> Any:
        if self.hlo is None:
            super().lower(ctx, *operands, **params)
        return self.by_xla(ctx, *self.broadcast_operands(ctx, operands))

    def by_xla(self, ctx: Any, *operands: Any, **attributes: Any) -> Any:
        """The StableHLO op, of operands in the shape of the result."""
        return ctx.op(self.hlo, *operands, **attributes)

    def broadcast_operands(self, ctx: Any, operands: Values) -> list[Any]:
        """Operands with scalars, and axes of size 1, broadcast to the shape of the result."""
        shape, atoms = ctx.aval_out.shape, ctx.eqn.invars
        return [
            ctx.filled(x, a, shape) if shape and not a.aval.shape else stretched_out(ctx, x, a.aval)
            for x, a in zip(operands, atoms, strict=True)
        ]

    def cost(self, *avals: ShapedArray, **params: Any) -> Cost:
        base = super().cost(*avals, **params)
        return base._replace(flops=base.flops * self.flops)

    def written(self, rule: str) -> Callable[..., Any] | None:
        declared = {"jvp": self.partials and self.partials[0], "transpose": self.linear_rule, "lower": self.compute}
        hollow = (Elementwise.jvp, Elementwise.transpose, *([Elementwise.lower] if self.hlo is None else []))
        return None if (found := declared.get(rule) or super().written(rule)) in hollow else found

    def _check_kind(self, aval: ShapedArray) -> None:
        if kind_of(aval.dtype) not in self.accepts:
            accepted = ", ".join(k.name.lower() for k in self.accepts if k.name)
            raise TypeError(
                f"{self.name} does not accept dtype {aval.dtype.name}; it takes {accepted} (convert with .astype)"
            )

    def _mismatch(self, problem: str, avals: Avals, fix: str) -> str:
        found = ", ".join(a.str_short(short_dtypes=False) for a in avals)
        return f"{self.name}: the operands' {problem}: {found}; {fix}"

    def _missing(self, rule: str, signature: str) -> NoReturn:
        file, line = definition(self.__wrapped__)
        of_lower = "hlo= of the op, or a @{0}.formula"
        remedy = {"jvp": "a @{0}.derivative", "transpose": "a @{0}.transposed", "lower": of_lower}
        raise MissingRule(
            f"primitive '{self.name}' has no {rule} rule; write {remedy[rule].format(self.__name__)} at {file}:{line}"
        )


E = TypeVar("E", bound=Elementwise)


@overload
def elementwise(
    *, family: type[E], hlo: str | None = ..., accepts: Kinds = ..., flops: int = ..., on_cpu: formula | None = ...,
    linear: Groups = ...,
) -> Callable[[Callable[..., Any]], E]: ...
@overload
def elementwise(
    *, hlo: str | None = ..., accepts: Kinds = ..., flops: int = ..., on_cpu: formula | None = ...,
    linear: Groups = ...,
) -> Callable[[Callable[..., Any]], Elementwise]: ...
def elementwise(
    *,
    hlo: str | None = None,
    accepts: Kinds = NUMERIC,
    flops: int = 1,
    on_cpu: formula | None = None,
    linear: Groups = (),
    family: type[Elementwise] = Elementwise,
) -> Callable[[Callable[..., Any]], Any]:
    """Declare an elementwise operation by its signature and docstring.

    `hlo` is the StableHLO (or chlo) op of the same meaning; `flops` the cost of one element; `on_cpu` the substitute
    for the op for real floats on the CPU, where XLA is slow (cpu_math); `linear` the groups of
    operands in which it is linear; `family` a subclass with other rules.
    """
    def declared(declaration: Callable[..., Any]) -> Elementwise:
        made = family(declaration, hlo=hlo, accepts=accepts, flops=flops, on_cpu=on_cpu)
        if linear:
            made.sharding = replace(made.sharding, linear=linear)
        return made

    return declared


# --- helpers


def like_dtypes(operands: Values) -> Values:
    """Operands with Python scalars in the dtype of the arrays among them, if it can hold numbers of their kind."""
    if _RANK.keys().isdisjoint(map(type, operands)):
        return operands
    aval = next((aval_of(x) for x in operands if type(x) not in _RANK), None)
    return operands if aval is None else [_like(x, aval) if type(x) in _RANK else x for x in operands]


_RANK = {bool: 0, int: 1, float: 2, complex: 3}
_KIND_RANK = {BOOL: 0, SIGNED: 1, UNSIGNED: 1, FLOAT: 2, COMPLEX: 3}


def _like(x: Any, aval: ShapedArray) -> Any:
    """A Python scalar in the dtype of the array it meets; unchanged if that dtype cannot hold numbers of its kind."""
    if _RANK[type(x)] > _KIND_RANK.get(kind_of(aval.dtype), -1):
        return x
    if aval.weak_type:
        x = scalar_type_of(aval.dtype)(x)
    return x if aval_of(x).dtype == aval.dtype else literal(x, aval.dtype)


def _term(partial: Any, tangent: Any) -> Any:
    if callable(partial):
        return partial(tangent)
    if type(partial) is int and partial in (1, -1):
        return tangent if partial == 1 else neg(tangent)
    return mul.bind(tangent, partial) if type(partial) not in _RANK else mul(tangent, partial)


def _gathered(ct: Any, aval: ShapedArray) -> Any:
    """The cotangent of an operand: summed over the axes along which the operand was repeated."""
    shape = aval_of(ct).shape
    if aval.shape == shape:
        return ct
    if aval.shape == ():
        return sum_over(ct, range(len(shape)))
    repeated = [d for d, (own, whole) in enumerate(zip(aval.shape, shape, strict=True)) if own != whole]
    return reshape(sum_over(ct, repeated), aval.shape)


# --- what derivatives themselves are made of


@elementwise(hlo="stablehlo.add", accepts=ANY, linear=JOINTLY)
def add_any(x: Any, y: Any) -> Any:
    """The sum of two tangents or cotangents."""


add_any.checks = KEEPS_NAN
add_any.derivatives(lambda x, y, out: 1, lambda x, y, out: 1)


@add_any.transposed
def _(ct: Any, x: Any, y: Any) -> Any:
    return ct, ct


@elementwise(hlo="stablehlo.negate", linear=JOINTLY)
def neg(x: Any) -> Any:
    """Negation, elementwise: `-x`.

    >>> neg(jnp.array([1.0, -2.0]))
    Array([-1.,  2.], dtype=float32)
    """


neg.checks = CARRIES_NAN
neg.derivatives(lambda x, out: -1)


@neg.transposed
def _(ct: Any, x: Any) -> Any:
    return (neg(ct),)


class Multiplication(Elementwise):
    """Multiplication."""

    checks = KEEPS_NAN

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        """Of `x * x` it is `2 (dx x)`: one product where XLA would have to find that two are equal."""
        (x, y), (dx, dy) = primals, tangents
        if x is not y or dx is not dy or is_zero(dx):
            return super().jvp(primals, tangents, **params)
        return self.bind(x, x), mul(2, mul(dx, x))


@elementwise(hlo="stablehlo.multiply", accepts=ANY, linear=IN_EACH, family=Multiplication)
def mul(x: Any, y: Any) -> Any:
    """Multiplication, elementwise: `x * y`."""


mul.derivatives(lambda x, y, out: y, lambda x, y, out: x)


@mul.transposed
def _(ct: Any, x: Any, y: Any) -> Any:
    return (mul(ct, y), None) if isinstance(x, Linear) else (None, mul(x, ct))
