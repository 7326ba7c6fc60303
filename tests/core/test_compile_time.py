"""ensure_compile_time_eval: numbers while a function is traced; named_call: names in StableHLO; versions."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import ensure_compile_time_eval, grad, jit, lax, make_jaxpr, named_call, numpy as jnp, vmap


def halvings(x: Any) -> Any:
    with ensure_compile_time_eval():
        count = jnp.ceil(jnp.log2(10.0))
        assert isinstance(count, xlamini.Array) and bool(count > 3)
    return x * x * count


@pytest.mark.full
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


def around_traced(x: Any) -> Any:
    """JAX gives 30.818596 for 2.0, and the derivative 12.1677065: recorded with jax 0.10.2."""
    with ensure_compile_time_eval():
        known = jnp.arange(3.0).sum()
        assert float(known) == 3.0
        mapped = vmap(jnp.sin)(x * jnp.ones(2)).sum()
        called = jit(lambda v: v + known)(x)
        chosen = lax.cond(x > 0, lambda v: v, lambda v: -v, x)
        carried = lax.scan(lambda c, _: (c * 2, None), x, None, length=2)[0]
        slope = grad(lambda v: v * v)(x)
        return (x * known + mapped + slope + called + chosen + carried + (x[None] * jnp.ones(2))[0]
                + jnp.where(x > 0, x, known))  # fmt: skip


@pytest.mark.full
def test_operations_on_traced_values_are_traced() -> None:
    x = np.float32(2.0)
    for f in (around_traced, jit(around_traced)):
        np.testing.assert_allclose(f(x), 30.818596, rtol=1e-6)
    for f in (grad(around_traced), jit(grad(around_traced)), grad(jit(around_traced))):
        np.testing.assert_allclose(f(x), 12.1677065, rtol=1e-6)
    np.testing.assert_allclose(vmap(around_traced)(np.ones(2, np.float32)), [17.682941] * 2, rtol=1e-6)


def test_a_nested_function_sees_traced_values_around_it() -> None:
    def f(x: Any) -> Any:
        with ensure_compile_time_eval():
            table = vmap(lambda i: i * x)(jnp.arange(3.0))
            return jit(lambda y: y + x)(table).sum(), float(jit(jnp.sum)(jnp.arange(4.0)))

    np.testing.assert_allclose(jit(f)(2.0), [12.0, 6.0])
    np.testing.assert_allclose(grad(lambda x: f(x)[0])(2.0), 6.0)


@pytest.mark.parametrize(
    "call, expected",
    [
        (lambda: jnp.mod(jnp.array([3, -3, 4]), 2), [1, 1, 0]),
        (lambda: jnp.floor_divide(jnp.array([3, -3]), 2), [1, -2]),
        (lambda: jnp.divmod(jnp.array([7, -7]), 3), [[2, -3], [1, 2]]),
        (lambda: jnp.arange(4.0).at[0].set(5), [5, 1, 2, 3]),
        (lambda: jnp.median(jnp.arange(4.0)), 1.5),
    ],
)
def test_library_functions_take_numbers_there(call: Any, expected: Any) -> None:
    """Their programs are those that they have outside of traces, where a number is an operand like others."""

    def f(x: Any) -> Any:
        with ensure_compile_time_eval():
            found = call()
            np.testing.assert_array_equal(found, expected)
        return x

    assert jit(f)(1.0) == 1
    vmap(f)(jnp.ones(2))


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
