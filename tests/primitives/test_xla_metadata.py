"""Frontend attributes in StableHLO and in the compiled program, and under every transformation."""
from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import enable_checks, grad, jit, lax, numpy as jnp, random, vmap
from xlamini.experimental.xla_metadata import set_xla_metadata, xla_metadata_call

pytestmark = pytest.mark.usefixtures("optimized")


def marked(a: Any, b: Any) -> Any:
    with set_xla_metadata(kind="b", n=3, flag=True):
        y = jnp.tan(a) * b
    return set_xla_metadata(y + 1, outer="x")


def attributes(text: str) -> list[tuple[str, str]]:
    return re.findall(r"stablehlo\.(\w+) .*frontend_attributes = {(.*?)}}", text)


def test_operations_have_the_attributes() -> None:
    """As in JAX 0.10.2's StableHLO."""
    inside = 'flag = "true", kind = "b", n = "3"'
    found = attributes(jit(marked).lower(1, 2.0).as_text())
    assert [a for a in found if a[0] != "convert"] == [("tan", inside), ("multiply", inside), ("add", 'outer = "x"')]
    assert 'frontend_attributes={flag="true",kind="b",n="3"}' in jit(marked).lower(1.0, 2.0).compile().as_text()


@pytest.mark.full
def test_values_and_derivatives_are_unchanged() -> None:
    def plain(a: Any, b: Any) -> Any:
        return jnp.tan(a) * b + 1

    x = jnp.array([0.2, 0.5])
    with enable_checks(True):
        for by in (lambda f: f, jit, lambda f: vmap(jit(f)), lambda f: jit(vmap(f)), lambda f: vmap(grad(f))):
            np.testing.assert_allclose(by(marked)(x, 2 * x), by(plain)(x, 2 * x), rtol=1e-6)
        slope = jit(grad(lambda x: vmap(marked)(x, x).sum()))
        np.testing.assert_allclose(slope(x), grad(lambda x: plain(x, x).sum())(x), rtol=1e-6)
    assert 'kind = "b"' in slope.lower(x).as_text()


def test_programs_that_differ_in_metadata_are_compiled_apart() -> None:
    texts = [
        jit(lambda x, kind=kind: set_xla_metadata(x * 2, kind=kind)).lower(1.0).compile().as_text() for kind in "ab"
    ]
    assert ['kind="a"' in text for text in texts] == [True, False]


@pytest.mark.full
def test_bodies_of_loops_and_branches_and_called_functions_are_marked() -> None:
    def f(x: Any) -> Any:
        with set_xla_metadata(where="here"):
            x = lax.scan(lambda c, _: (jnp.sin(c), None), x, None, length=3)[0]
            x = lax.cond(x > 0, jnp.cos, jnp.tan, x)
            return jit(jnp.exp)(x)

    text = jit(f).lower(1.0).as_text()
    marked_here = [name for name, kvs in attributes(text) if kvs == 'where = "here"']
    assert {"sine", "cosine", "tan", "exponential"} <= set(marked_here)
    np.testing.assert_allclose(jit(grad(f))(1.0), grad(f)(1.0), rtol=1e-6)


def test_a_jitted_function_is_traced_anew_for_other_attributes() -> None:
    f = jit(lambda x: jnp.sin(x))

    def found() -> list[tuple[str, str]]:
        assert f(1.0) == jnp.sin(1.0)
        return attributes(f.lower(1.0).as_text())

    with set_xla_metadata(a=1):
        with set_xla_metadata(a=2, b=1):
            assert found() == [("sine", 'a = "2", b = "1"')]
        assert found() == [("sine", 'a = "1"')]
    assert found() == []


def test_a_decorated_function_and_its_stages_are_marked() -> None:
    """As in JAX 0.10.2."""

    @set_xla_metadata(log=True)
    @jit
    def f(x: Any) -> Any:
        return jnp.cos(jnp.sin(x))

    expected = [("sine", 'log = "true"'), ("cosine", 'log = "true"')]
    assert attributes(f.lower(1.0).as_text()) == expected == attributes(f.trace(1.0).lower().as_text())
    np.testing.assert_allclose(f(1.0), np.cos(np.sin(1.0)), rtol=1e-6)


def test_attributes_add_up_and_arguments_have_none() -> None:
    def f(x: Any) -> Any:
        x = set_xla_metadata(x, of_argument=1)
        with set_xla_metadata(a=1):
            y = set_xla_metadata(-x, b=2)
        return {"y": y}

    text = jit(f).lower(1.0).as_text()
    assert attributes(text) == [("negate", 'a = "1", b = "2"')] and "of_argument" not in text


def test_values_outside_of_a_trace_are_unchanged() -> None:
    x = jnp.ones(2)
    assert set_xla_metadata(x, a=1) is x
    with set_xla_metadata(a=1):
        assert float((x * 2).sum()) == 4
    with pytest.raises(TypeError, match=r"set_xla_metadata: a must be a string, a number or a bool, got \[1\]"):
        set_xla_metadata(x, a=[1])


def test_random_keys_are_not_marked() -> None:
    draw = jit(lambda key: random.normal(set_xla_metadata(random.fold_in(key, 1), note="key")))
    assert draw(random.key(0)) == random.normal(random.fold_in(random.key(0), 1))


@xla_metadata_call(kind="b", n=3)
def block(x: Any, *, y: Any) -> Any:
    return {"z": jnp.sin(x) * y}


def calls(fun: Any, *args: Any) -> list[str]:
    return re.findall(r"call @(\w+)\(.*frontend_attributes = {(.*?)}}", jit(fun).lower(*args).as_text())


def test_a_block_is_one_function_with_attributes() -> None:
    """As in JAX 0.12.0.1: two calls for a gradient, one for a tangent and for a batch, all with the attributes."""
    f, inside = (lambda x: block(x, y=x + 1)["z"]), 'kind = "b", n = "3"'
    assert [found for _, found in calls(f, 2.0)] == [inside]
    assert [found for _, found in calls(grad(f), 2.0)] == [inside] * 2
    assert [found for _, found in calls(vmap(f), jnp.arange(2.0))] == [inside]
    assert 'frontend_attributes={kind="b",n="3"}' in jit(f).lower(2.0).compile().as_text()


def test_a_block_is_the_function() -> None:
    f, x = (lambda x: block(x, y=x + 1)["z"]), np.float32(2)
    slope = np.cos(x) * (x + 1) + np.sin(x)
    for transform in (grad(f), jit(grad(f)), lambda x: xlamini.jvp(f, (x,), (np.float32(1),))[1]):
        np.testing.assert_allclose(transform(x), slope, rtol=1e-6)
    np.testing.assert_allclose(vmap(grad(f))(jnp.full(2, x)), [slope, slope], rtol=1e-6)
    np.testing.assert_allclose(lax.map(f, jnp.full(2, x)), np.full(2, np.sin(x) * (x + 1)), rtol=1e-6)
    with pytest.raises(TypeError, match="xla_metadata_call: kind must be a string, a number or a bool"):
        xla_metadata_call(kind=None)(f)
