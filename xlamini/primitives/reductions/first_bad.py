"""first_bad: the flat index of the first NaN, infinite or true element; look_at: the same as one check of many.

They lower to calls that XLA does not inline, of one function for each type: a program has many checks of few types, and
would take several times as long to compile if each were fused into its surroundings.
"""
from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from xlamini.core import (
    Avals,
    Axis,
    Cost,
    Dims,
    Factors,
    Jaxpr,
    Params,
    Primitive,
    ShapedArray,
    Values,
    Zero,
    aval_of,
    literal,
    memoised,
    reducing,
    tangent_aval,
)
from xlamini.core.sharding.facet import Sharding
from xlamini.core.tracing.state import state
from xlamini.core.tracing.tracer import build
from xlamini.primitives.base.batch_ops import with_batch_first
from xlamini.primitives.base.elementwise import mul
from xlamini.primitives.elementwise.arithmetic import abs, add
from xlamini.primitives.elementwise.comparison import eq, ge, lt, ne
from xlamini.primitives.elementwise.convert_element_type import convert
from xlamini.primitives.elementwise.select import where
from xlamini.primitives.reductions.reductions import reduce_min
from xlamini.primitives.shape.iota import broadcasted_iota

NOWHERE = 2**31 - 1
"""The index where no element is bad."""
_INT32 = np.dtype(np.int32)


def first_bad(x: Any, what: str) -> Any:
    """The flat index of the first element that is "nan", "inf" or "true"; NOWHERE if there is none.

    In arrays with so many elements that int32 cannot count them it is 0.
    """
    return first_bad_p.bind(x, what=what, lanes=0)


def _factors(avals: Avals, outs: Avals, params: Params) -> Factors:
    return reducing(avals[0], range(params["lanes"], avals[0].ndim))


class FirstBad(Primitive):
    """`lanes` leading dimensions are kept, each with an index of its own."""

    name = "first_bad"
    sharding: Sharding = Sharding(factors=_factors)

    def shape_rule(self, x: ShapedArray, *, what: str, lanes: int) -> ShapedArray:
        return ShapedArray(x.shape[:lanes], _INT32)

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        out = self.bind(*primals, **params)
        return out, Zero(tangent_aval(aval_of(out)))

    def batch(self, axis: Axis, operands: Values, dims: Dims, *, what: str, lanes: int) -> Any:
        (x,) = with_batch_first(operands, dims, axis.size)
        return self.bind(x, what=what, lanes=lanes + 1), 0

    def lower(self, ctx: Any, x: Any, *, what: str, lanes: int) -> Any:
        aval = ctx.avals_in[0]
        program = _search(what, ShapedArray(aval.shape, aval.dtype), lanes)
        return ctx.call(program, [x], f"first_{what}", aval.size > 1)[0]

    def cost(self, x: ShapedArray, **params: Any) -> Cost:
        return Cost(x.size, x.nbytes)


class LookAt(Primitive):
    """One more check of a program: x, `at` and `passed` before it -> `at` and `passed` after it.

    `at` is the index that `first_bad` gives for the first value that is bad, and `passed` the number of checks before
    that one. So a check reads no number of its own, and equal parts of a program have equal checks.
    """

    name = "look_at"
    multiple_results = True

    def shape_rule(self, x: ShapedArray, at: ShapedArray, passed: ShapedArray, **params: Any) -> list[ShapedArray]:
        return [at, passed]

    def jvp(self, primals: Values, tangents: Values, **params: Any) -> Any:
        outs = self.bind(*primals, **params)
        return outs, [Zero(tangent_aval(aval_of(x))) for x in outs]

    def batch(self, axis: Axis, operands: Values, dims: Dims, *, what: str, lanes: int) -> Any:
        return self.bind(*with_batch_first(operands, dims, axis.size), what=what, lanes=lanes + 1), [0, 0]

    def lower(self, ctx: Any, *operands: Any, what: str, lanes: int) -> Any:
        aval = ctx.avals_in[0]
        program = _look(what, ShapedArray(aval.shape, aval.dtype), lanes)
        return ctx.call(program, operands, f"look_for_{what}", aval.size > 1)

    def cost(self, x: ShapedArray, *state: ShapedArray, **params: Any) -> Cost:
        return Cost(x.size, x.nbytes)


first_bad_p: Final = FirstBad()
look_at_p: Final = LookAt()


def one_more(at: Any, passed: Any, found: Any) -> tuple[Any, Any]:
    """`at` and `passed` after a check that found its first bad element at `found`."""
    at = where(lt(at, literal(NOWHERE, _INT32)), at, found)
    return at, add(passed, convert(ge(at, literal(NOWHERE, _INT32)), _INT32))


@memoised("helper: checks of values", 2048)
def _look(what: str, aval: ShapedArray, lanes: int) -> Jaxpr:
    counts, search = ShapedArray(aval.shape[:lanes], _INT32), _search(what, aval, lanes)

    def look(x: Any, at: Any, passed: Any) -> tuple[Any, Any]:
        return one_more(at, passed, _found(search, x))

    return build(look, [aval, counts, counts], f"look_for_{what}")[0]


def _found(search: Jaxpr, x: Any) -> Any:
    assert state.builder is not None
    return state.builder.inline(search, [x])[0]


@memoised("helper: searches for bad elements", 2048)
def _search(what: str, aval: ShapedArray, lanes: int) -> Jaxpr:
    tests = {"nan": lambda x: ne(x, x), "inf": _is_infinite, "true": lambda x: x}
    return build(lambda x: [_first_true(tests[what](x), lanes)], [aval], f"first_{what}")[0]


def _is_infinite(x: Any) -> Any:
    size = abs(x)
    return eq(size, literal(float("inf"), aval_of(size).dtype))


def _first_true(bad: Any, lanes: int) -> Any:
    """XLA is faster at reducing the first dimension, and then the others, than all at once."""
    shape = aval_of(bad).shape
    found = where(bad, _index(shape, lanes), literal(NOWHERE, _INT32))
    if len(shape) == lanes:
        return found
    places = reduce_min(found, (lanes,))
    return reduce_min(places, range(lanes, len(shape) - 1)) if len(shape) > lanes + 1 else places


def _index(shape: Sequence[int], lanes: int) -> Any:
    """The flat index of each element of a lane."""
    index: Any = literal(0, _INT32)
    if math.prod(shape[lanes:]) < NOWHERE:
        for d in range(lanes, len(shape)):
            stride = literal(math.prod(shape[d + 1 :]), _INT32)
            index = add(index, mul(broadcasted_iota(_INT32, shape, d), stride))
    return index
