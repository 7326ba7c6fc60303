"""The rule `linearize` of a primitive made by name. Expected values are closed forms."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import extend, grad, jit, jvp, lax, linearize, numpy as jnp, vmap
from xlamini.core.program.bindable import primitives
from xlamini.errors import MissingRule

pytestmark = pytest.mark.full


@pytest.fixture
def product() -> Iterator[tuple[extend.Primitive, list[Any]]]:
    """`x * x * y` by a rule that notes which operands have tangents."""
    before, p, seen = len(primitives), extend.Primitive("product"), []
    extend.shape_rule[p] = lambda x, y: x
    extend.expand_rule[p] = lambda x, y: x * x * y
    extend.batch_rule[p] = lambda axis, operands, dims: (extend.expand_rule[p](*operands), 0)

    @extend.linearize_rule(p)
    def _(nonzero: Any, primals: Any) -> Any:
        x, y = primals
        seen.append(nonzero)

        def linear(residuals: Any, dx: Any, dy: Any) -> Any:
            terms = [a * t for a, t in zip(residuals, (dx, dy), strict=True) if not extend.is_zero(t)]
            return sum(terms[1:], terms[0])

        return p.bind(x, y), (2 * x * y, x * x), linear

    yield p, seen
    del primitives[before:]


def test_reverse_mode_is_by_the_linear_function(product: Any) -> None:
    p, seen = product
    assert float(grad(p.bind)(2.0, 3.0)) == 12.0
    assert seen[-1] == (True, False)
    dx, dy = jit(grad(p.bind, argnums=(0, 1)))(2.0, 3.0)
    assert (float(dx), float(dy), seen[-1]) == (12.0, 4.0, (True, True))
    assert float(linearize(lambda x: p.bind(x, x), 2.0)[1](1.0)) == 12.0


def test_it_composes_with_loops_and_batches(product: Any) -> None:
    p, _ = product

    def power(x: Any) -> Any:
        return lax.scan(lambda c, _: (p.bind(c, x), None), x, None, length=2)[0]  # x ** 7

    assert float(grad(power)(1.5)) == pytest.approx(7 * 1.5**6, rel=1e-6)
    xs = jnp.arange(1.0, 4.0)
    np.testing.assert_allclose(vmap(grad(lambda x: p.bind(x, 2.0)))(xs), 4 * xs)


def test_what_is_missing_or_wrong_is_an_error_that_says_so(product: Any) -> None:
    p, _ = product
    with pytest.raises(MissingRule, match="'product' has no jvp rule"):
        jvp(p.bind, (2.0, 3.0), (1.0, 1.0))
    extend.linearize_rule[p] = lambda nonzero, primals: p.bind(*primals)
    with pytest.raises(TypeError, match="linearize rule of 'product' must return results, residuals and a linear"):
        grad(p.bind)(2.0, 3.0)
    extend.linearize_rule[p] = lambda nonzero, primals: (p.bind(*primals), (), lambda res, *ts: xlamini.numpy.ones(2))
    with pytest.raises(TypeError, match=r"returned a tangent of type float32\[2\]"):
        grad(p.bind)(2.0, 3.0)


def test_a_result_that_depends_on_known_operands_alone_is_known() -> None:
    before, p = len(primitives), extend.Primitive("pair", multiple_results=True)
    extend.shape_rule[p] = lambda a, b: [a, b]
    extend.expand_rule[p] = lambda a, b: [a * 2, b * a]
    extend.partial_eval_rule[p] = lambda unknown, operands: [operands[0] * 2, operands[1] * operands[0]]
    unknown = extend.Unknown(extend.ShapedArray((), np.float32))
    for fun in (p.bind, jit(lambda a, b: p.bind(a, b))):
        part = extend.trace_partly(lambda a, b, fun=fun: fun(a, b), [jnp.float32(3.0), unknown])
        assert float(part.outs[0]) == 6.0
        assert isinstance(part.outs[1], extend.Unknown)
        assert float(extend.eval_jaxpr(part.jaxpr, part.consts, 5.0)[0]) == 15.0
    del primitives[before:]
