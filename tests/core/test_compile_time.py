"""ensure_compile_time_eval: numbers while a function is traced; named_call: names in StableHLO; versions."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import ensure_compile_time_eval, grad, jit, lax, make_jaxpr, named_call, numpy as jnp, vmap
from xlamini.errors import ConcretizationTypeError


def halvings(x: Any) -> Any:
    with ensure_compile_time_eval():
        count = jnp.ceil(jnp.log2(10.0))
        assert isinstance(count, xlamini.Array) and bool(count > 3)
    return x * x * count


def test_operations_are_evaluated_while_tracing() -> None:
    assert float(jit(halvings)(3.0)) == 36 == float(halvings(3.0))
    assert float(jit(grad(halvings))(3.0)) == 24 == float(grad(jit(halvings))(3.0))
    np.testing.assert_array_equal(jit(vmap(halvings))(jnp.arange(3.0)), [0, 4, 16])
    assert [eqn.primitive.name for eqn in make_jaxpr(halvings)(3.0).eqns] == ["mul", "mul"]


def test_as_a_decorator_and_nested() -> None:
    @ensure_compile_time_eval()
    def table() -> Any:
        with ensure_compile_time_eval():
            return jnp.cumsum(jnp.arange(4))

    assert int(jit(lambda x: x + int(table()[3]))(1)) == 7


def test_operations_on_traced_values_inside_are_traced() -> None:
    def mixed(x: Any) -> Any:
        with ensure_compile_time_eval():
            count = jnp.arange(3).sum()
            assert int(count) == 3
            slope = grad(lambda y: y * y * x)(2.0)
            traced = jit(lambda a, b: (a + 1, jnp.sin(b)))(2.0, x)[1]
            assert float(jit(grad(lambda y: y**3))(2.0)) == 12
            picked = lax.cond(x > 0, lambda: traced, lambda: -traced)
        return slope * count + picked

    def plain(x: Any) -> Any:
        return 12 * x + jnp.sin(x) * jnp.sign(x)

    for x in (0.5, -0.5):
        for transformed in (jit, grad, lambda f: jit(grad(f)), lambda f: grad(jit(f))):
            np.testing.assert_allclose(transformed(mixed)(x), transformed(plain)(x), rtol=1e-6)
    xs = jnp.array([0.5, -0.5])
    np.testing.assert_allclose(jit(vmap(grad(mixed)))(xs), vmap(grad(plain))(xs), rtol=1e-6)
    np.testing.assert_allclose(jit(lambda y: vmap(lambda x: mixed(y))(xs))(0.5), [plain(0.5)] * 2, rtol=1e-6)
    with pytest.raises(ConcretizationTypeError, match="bool"):
        jit(ensure_compile_time_eval()(lambda x: 1 if x > 0 else 2))(1.0)


def test_operations_of_a_named_call_have_its_name() -> None:
    @named_call
    def layer(x: Any) -> Any:
        return jnp.tanh(x)

    def text(fun: Any) -> str:
        return jit(fun).lower(1.0).as_text(debug_info=True)

    assert "/layer/tanh" in text(layer) and "/block/tanh" in text(named_call(layer.__wrapped__, name="block"))
    assert layer.__name__ == "layer"
    with pytest.raises(TypeError, match="named_call takes a function, got 3"):
        named_call(3)  # type: ignore[type-var]


def test_versions() -> None:
    assert ".".join(map(str, xlamini.__version_info__)) == xlamini.__version__ == xlamini.version.__version__
