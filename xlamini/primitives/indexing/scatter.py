"""scatter and its relatives: windows of an array set, added to, multiplied… at many indices.

Where indices repeat, updates combine in no fixed order, and of those that are set one wins.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from xlamini.core import (
    Jaxpr,
    Params,
    ShapedArray,
    Values,
    Zero,
    aval_of,
    cotangent_aval,
    is_linear,
    is_zero,
    literal,
    tangent_aval,
)
from xlamini.core.tracing.tracer import build
from xlamini.core.wrapping import named_as
from xlamini.primitives.base.elementwise import like_dtypes, neg
from xlamini.primitives.base.tangent_ops import instantiated, zeros
from xlamini.primitives.elementwise.arithmetic import div, mul
from xlamini.primitives.elementwise.comparison import eq
from xlamini.primitives.elementwise.convert_element_type import convert
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.indexing.gather_numbers import GatherScatterMode, ScatterDimensionNumbers
from xlamini.primitives.indexing.scatter_family import Scatter, windows_at
from xlamini.primitives.indexing.scatter_winners import ScatterWinners
from xlamini.runtime import Array

if TYPE_CHECKING:
    from xlamini.core.program.checks import Checks


class LinearScatter(Scatter):
    """The sum or difference of elements and updates: linear in both."""

    def __init__(self, name: str, combine: str, sign: int):
        super().__init__(name, combine)
        self.sign = sign

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        x, indices, updates = primals
        out = self.bind(x, indices, updates, **params)
        if is_zero(tangents[2]):
            return out, tangents[0]
        return out, self.bind(instantiated(tangents[0]), indices, tangents[2], **params)

    def transpose(self, ct: Any, x: Any, indices: Any, updates: Any, **params: Any) -> Values:
        given = windows_at(ct, indices, updates, **params) if is_linear(updates) else None
        if given is not None and self.sign < 0:
            given = neg(given)
        return [ct if is_linear(x) else None, None, given]


class ScatterSet(Scatter):
    """The updates themselves. With unique indices it is linear; else the tangent is of the update that won."""

    checks: Checks = replace(Scatter.checks, makes_nan=False)

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        x, indices, updates = primals
        if is_zero(tangents[0]) and is_zero(tangents[2]):
            return self.bind(x, indices, updates, **params), Zero(tangent_aval(aval_of(x)))
        moved = [instantiated(t) for t in (tangents[0], tangents[2])]
        if params["unique_indices"]:
            return self.bind(*primals, **params), self.bind(moved[0], indices, moved[1], **params)
        kept, won = scatter_winners_p.of(x, indices, updates, **params)
        out = _merged(kept, won, x, indices, updates, params)
        return out, _merged(kept, won, moved[0], indices, moved[1], params)

    def transpose(self, ct: Any, x: Any, indices: Any, updates: Any, **params: Any) -> Values:
        nothing = zeros(cotangent_aval(aval_of(updates)))
        kept = self.bind(ct, indices, nothing, **params) if is_linear(x) else None
        given = windows_at(ct, indices, updates, **params) if is_linear(updates) else None
        return [kept, None, given]


def _merged(kept: Any, won: Any, x: Any, indices: Any, updates: Any, params: Params) -> Any:
    """The elements that no update reached, and the updates that won."""
    dtype = aval_of(x).dtype
    rest, given = where(kept, x, literal(0, dtype)), where(won, updates, literal(0, dtype))
    return scatter_add_p.bind(rest, indices, given, **params)


class ScatterMul(Scatter):
    """Products: linear in the elements, and in the updates where indices are unique."""

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        x, indices, updates = primals
        out = self.bind(*primals, **params)
        moved: Any = Zero(tangent_aval(aval_of(out)))
        if not is_zero(tangents[0]):
            moved = self.bind(tangents[0], indices, updates, **params)
        if is_zero(tangents[2]):
            return out, moved
        if not params["unique_indices"]:
            raise NotImplementedError(
                "scatter_mul has no derivative in the updates where indices may repeat; if they do not, pass "
                "unique_indices=True, as in x.at[i].multiply(y, unique_indices=True)"
            )
        change = mul(tangents[2], windows_at(x, indices, updates, **params))
        return out, scatter_add_p.bind(instantiated(moved), indices, change, **params)

    def transpose(self, ct: Any, x: Any, indices: Any, updates: Any, **params: Any) -> Values:
        return [self.bind(ct, indices, updates, **params), None, None]


class ScatterExtremum(Scatter):
    """Minimum or maximum: the tangent is that of the values equal to the result, in equal parts."""

    checks: Checks = replace(Scatter.checks, makes_nan=False)

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        x, indices, updates = primals
        out = self.bind(x, indices, updates, **params)
        if is_zero(tangents[0]) and is_zero(tangents[2]):
            return out, Zero(tangent_aval(aval_of(out)))
        dtype = aval_of(x).dtype
        best = windows_at(out, indices, updates, **params)
        own, given = convert(eq(x, out), dtype), convert(eq(updates, best), dtype)
        parts = scatter_add_p.bind(own, indices, given, **params)
        change = scatter_add_p.bind(
            mul(instantiated(tangents[0]), own), indices, mul(instantiated(tangents[2]), given), **params
        )
        return out, div(change, parts)


class ScatterApply(Scatter):
    """A function applied to the elements; the updates only give the shape."""

    def combined(
        self, ctx: Any, scalar: ShapedArray, old: Any, new: Any, *, update_jaxpr: Jaxpr, **params: Any
    ) -> Any:
        return ctx.run(update_jaxpr, [old])[0]

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        if all(is_zero(t) for t in tangents):
            return self.bind(*primals, **params), tangents[0]
        raise NotImplementedError(
            "scatter_apply has no derivative where indices may repeat; if they do not, write "
            "x.at[i].set(f(x[i]), unique_indices=True)"
        )


scatter_p: Final = ScatterSet("scatter")
scatter_winners_p: Final = ScatterWinners("scatter-winners", scatter_p.bind)
scatter_add_p: Final = LinearScatter("scatter-add", "stablehlo.add", 1)
scatter_sub_p: Final = LinearScatter("scatter-sub", "stablehlo.subtract", -1)
scatter_mul_p: Final = ScatterMul("scatter-mul", "stablehlo.multiply")
scatter_min_p: Final = ScatterExtremum("scatter-min", "stablehlo.minimum")
scatter_max_p: Final = ScatterExtremum("scatter-max", "stablehlo.maximum")
scatter_apply_p: Final = ScatterApply("scatter-apply")


# --- the functions


def _of_updates(primitive: Scatter):
    """Decorator of a declaration: binds the primitive, with the parameters that all of them have."""

    def declare(declaration: Callable[[], None]):
        @named_as(declaration)
        def scatter(
            operand: Any,
            scatter_indices: Any,
            updates: Any,
            dimension_numbers: ScatterDimensionNumbers,
            *,
            indices_are_sorted: bool = False,
            unique_indices: bool = False,
            mode: str | GatherScatterMode | None = None,
        ) -> Array:
            options = _options(dimension_numbers, indices_are_sorted, unique_indices, mode)
            operand, updates = like_dtypes((operand, updates))
            return primitive.bind(operand, scatter_indices, updates, **options)

        return scatter

    return declare


@_of_updates(scatter_p)
def scatter() -> None:
    """The operand with its windows at the index vectors along the last dimension of `scatter_indices` set to `updates`.

    `mode` sets the meaning of out-of-bounds indices (see GatherScatterMode; by default their updates are dropped).
    `unique_indices` and `indices_are_sorted` are promises that let XLA be faster, and derivatives simpler. Raises
    ShapeError or TypeError for dimension numbers or operands that do not fit.

    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter(xlamini.numpy.zeros(3), xlamini.numpy.array([[2], [0]]), xlamini.numpy.array([5., 7.]), numbers)
    Array([7., 0., 5.], dtype=float32)
    """


@_of_updates(scatter_add_p)
def scatter_add() -> None:
    """The operand with `updates` added to its windows at `scatter_indices`; arguments and errors: `scatter`.

    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_add(jnp.ones(3), jnp.array([[2], [2]]), jnp.array([5.0, 7.0]), numbers)
    Array([ 1.,  1., 13.], dtype=float32)
    """


@_of_updates(scatter_sub_p)
def scatter_sub() -> None:
    """The operand with `updates` subtracted from its windows at `scatter_indices`; arguments and errors: `scatter`.

    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_sub(jnp.ones(3), jnp.array([[2], [2]]), jnp.array([5.0, 7.0]), numbers)
    Array([  1.,   1., -11.], dtype=float32)
    """


@_of_updates(scatter_mul_p)
def scatter_mul() -> None:
    """The operand with its windows at `scatter_indices` multiplied by `updates`; arguments and errors: `scatter`.

    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_mul(jnp.ones(3), jnp.array([[2], [2]]), jnp.array([5.0, 7.0]), numbers)
    Array([ 1.,  1., 35.], dtype=float32)
    """


@_of_updates(scatter_min_p)
def scatter_min() -> None:
    """The operand with `updates` in the place of larger elements of its windows; arguments and errors: `scatter`.

    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_min(jnp.ones(3), jnp.array([[2], [0]]), jnp.array([-5.0, 7.0]), numbers)
    Array([ 1.,  1., -5.], dtype=float32)
    """


@_of_updates(scatter_max_p)
def scatter_max() -> None:
    """The operand with `updates` in the place of smaller elements of its windows; arguments and errors: `scatter`.

    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> scatter_max(jnp.ones(3), jnp.array([[2], [0]]), jnp.array([-5.0, 7.0]), numbers)
    Array([7., 1., 1.], dtype=float32)
    """


def scatter_apply(
    operand: Any,
    scatter_indices: Any,
    func: Callable[[Any], Any],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """The operand with `func` applied to the elements of its windows, as often as an index occurs.

    `update_shape` is the shape that updates would have; `func` maps a scalar to a scalar of the same dtype.

    >>> numbers = ScatterDimensionNumbers((), (0,), (0,))
    >>> twice = xlamini.numpy.array([[0], [0]])
    >>> scatter_apply(xlamini.numpy.ones(2), twice, lambda x: x * 3, numbers, update_shape=(2,))
    Array([9., 1.], dtype=float32)
    """
    options = _options(dimension_numbers, indices_are_sorted, unique_indices, mode)
    aval = aval_of(operand).strip_weak_type()
    updates = zeros(aval.update(shape=tuple(update_shape)))
    jaxpr = _scalar_jaxpr(func, aval.update(shape=()))
    return scatter_apply_p.bind(operand, scatter_indices, updates, update_jaxpr=jaxpr, **options)


def _options(
    numbers: ScatterDimensionNumbers, indices_are_sorted: bool, unique_indices: bool, mode: Any
) -> dict[str, Any]:
    return {
        "dimension_numbers": ScatterDimensionNumbers(*map(tuple, numbers)),
        "indices_are_sorted": bool(indices_are_sorted),
        "unique_indices": bool(unique_indices),
        "mode": GatherScatterMode.from_any(mode),
    }


def _scalar_jaxpr(func: Callable[[Any], Any], aval: ShapedArray) -> Jaxpr:
    jaxpr, consts = build(lambda x: [func(x)], [aval], "update")
    if consts:
        raise TypeError("scatter_apply: func uses arrays from outside; it may use its argument and numbers only")
    if jaxpr.outvars[0].aval.strip_weak_type() != aval:
        raise TypeError(
            f"scatter_apply: func maps {aval.str_short()} to {jaxpr.outvars[0].aval.str_short()}; the type must stay"
        )
    return jaxpr
