"""A primitive whose expansion captures an array, within everything that takes a function: as the plain function."""
from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.support.higher_order import SIZE, WRAPS
from xlamini import extend, grad, jit, jvp, numpy as jnp, vmap
from xlamini.core.program.bindable import primitives

WEIGHTS = np.array([[0.3, -0.2], [0.5, 0.4]], np.float32)
X = np.array([0.4, -0.3], np.float32)
NO_FORWARD = {"custom_vjp"}
CLOSED = {"kernel"}  # kernels capture no arrays


def plain(x: Any) -> Any:
    return jnp.sin(WEIGHTS @ x)


@pytest.fixture
def layer() -> Iterator[Any]:
    """`plain` as two primitives: a linear one, with a transpose, and the whole, with a jvp in terms of it."""
    before, weights = len(primitives), jnp.asarray(WEIGHTS)
    dot_p, layer_p = extend.Primitive("weighted"), extend.Primitive("layer")
    for p in (dot_p, layer_p):
        extend.shape_rule[p] = lambda x, **params: x
    extend.expand_rule[dot_p] = lambda x, *, back: x @ (weights if back else weights.T)
    extend.expand_rule[layer_p] = lambda x: jnp.sin(dot_p.bind(x, back=False))
    extend.jvp_rule[dot_p] = lambda ps, ts, *, back: (dot_p.bind(*ps, back=back), dot_p.bind(*ts, back=back))
    extend.transpose_rule[dot_p] = lambda ct, x, *, back: [dot_p.bind(ct, back=not back)]

    @extend.jvp_rule(layer_p)
    def _(primals: Any, tangents: Any) -> Any:
        return layer_p.bind(*primals), jnp.cos(dot_p.bind(*primals, back=False)) * dot_p.bind(*tangents, back=False)

    for p in (dot_p, layer_p):

        @extend.batch_rule(p)
        def _(axis: Any, operands: Any, dims: Any, *, p: Any = p, **params: Any) -> Any:
            return p.bind(jnp.moveaxis(operands[0], dims[0], 0), **params), 0

    yield layer_p.bind
    del primitives[before:]


def total(f: Any) -> Any:
    return lambda x: f(x).sum()


def tangent(f: Any) -> Any:
    return lambda x: jvp(f, (x,), (jnp.ones_like(x),))[1]


@pytest.mark.full
@pytest.mark.parametrize("name", [name for name in WRAPS if name not in CLOSED])
def test_within(layer: Any, name: str) -> None:
    wrap, examples = WRAPS[name], np.stack([X, -X, 2 * X])
    assert examples.shape[-1] == SIZE
    composed = [(lambda f: f, X), (jit, X), (vmap, examples)]
    if wrap.reverse:
        composed += [(lambda f: grad(total(f)), X), (lambda f: jit(vmap(grad(total(f)))), examples)]
    if name not in NO_FORWARD:
        composed += [(tangent, X)]
    for transform, x in composed:
        found, wanted = transform(wrap.traced(layer))(x), transform(wrap.traced(plain))(x)
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
