"""ensure_compile_time_eval: numbers while a function is traced; named_call: names in StableHLO; versions."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import ensure_compile_time_eval, grad, jit, make_jaxpr, named_call, numpy as jnp, vmap
from xlamini.errors import TracerBoolConversionError


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


def test_operations_on_traced_values_stay_part_of_the_program() -> None:
    def mixed(x: Any) -> Any:
        with ensure_compile_time_eval():
            known = jnp.sum(jit(jnp.sin)(jnp.arange(3.0)))
            assert isinstance(known, xlamini.Array)
            return jnp.where(x > 0, jit(jnp.sin)(x) * known, x)

    sines = float(np.sin([1.0, 2.0]).sum())
    np.testing.assert_allclose(jit(mixed)(2.0), np.sin(2.0) * sines, rtol=1e-6)
    np.testing.assert_allclose(jit(grad(mixed))(2.0), np.cos(2.0) * sines, rtol=1e-6)
    np.testing.assert_allclose(grad(jit(mixed))(2.0), np.cos(2.0) * sines, rtol=1e-6)
    expected = [np.sin(1.0) * sines, -1]
    np.testing.assert_allclose(vmap(mixed)(jnp.array([1.0, -1.0])), expected, rtol=1e-6)
    np.testing.assert_allclose(jit(lambda y: vmap(lambda x: mixed(y) + x)(jnp.zeros(2)))(1.0), expected[:1] * 2, rtol=1e-6)


def test_a_traced_value_has_no_number_inside() -> None:
    def wrong(x: Any) -> Any:
        with ensure_compile_time_eval():
            return 1 if x > 0 else 2

    with pytest.raises(TracerBoolConversionError):
        jit(wrong)(1.0)
    assert float(jit(lambda x: x + 1)(1.0)) == 2  # tracing goes on as before


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
