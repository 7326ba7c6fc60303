"""Layouts of values in programs, and formats of arrays and compiled programs."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import enable_checks, grad, jit, numpy as jnp, random, vmap
from xlamini.experimental.layout import Format, Layout, with_layout_constraint

COLUMNS, ROWS = Layout((1, 0)), Layout((0, 1))


def constrained(x: Any) -> Any:
    return with_layout_constraint(jnp.sin(x), COLUMNS) * 2


def test_a_constraint_is_an_identity_that_the_compiler_obeys() -> None:
    x = jnp.arange(6.0).reshape(2, 3)
    np.testing.assert_allclose(jit(constrained)(x), 2 * np.sin(x), rtol=1e-6)
    lowered = jit(constrained).lower(x)
    assert "@LayoutConstraint" in lowered.as_text() and "f32[2,3]{0,1}" in lowered.compile().as_text()
    tree = with_layout_constraint({"a": x, "b": (x,)}, {"a": COLUMNS, "b": ROWS})
    assert tree["b"][0].shape == (2, 3)


@pytest.mark.full
def test_under_transformations_in_both_orders() -> None:
    xs = jnp.arange(24.0).reshape(4, 2, 3)
    with enable_checks(True):
        for f in (jit(vmap(constrained)), vmap(jit(constrained)), vmap(constrained, in_axes=2, out_axes=2)):
            np.testing.assert_allclose(f(xs), 2 * np.sin(xs), rtol=1e-5, atol=1e-6)
        slope = jit(grad(lambda x: constrained(x).sum()))
        np.testing.assert_allclose(slope(xs[0]), 2 * np.cos(xs[0]), rtol=1e-5, atol=1e-6)
    assert slope.lower(xs[0]).as_text().count("@LayoutConstraint") == 1  # of the cotangent: the value is not needed


def test_of_sharded_arrays() -> None:
    mesh = xlamini.make_mesh((8,), ("x",))
    place = xlamini.NamedSharding(mesh, xlamini.P("x"))
    x = xlamini.device_put(jnp.arange(16.0).reshape(8, 2), place)
    out = jit(constrained)(x)
    np.testing.assert_allclose(out, 2 * np.sin(x), rtol=1e-5, atol=1e-6)
    assert x.format == Format(Layout((0, 1), ()), place) and out.sharding.is_equivalent_to(place, 2)


def test_formats_are_taken_in_place_of_shardings() -> None:
    x = np.ones((2, 3), "float32")
    here = xlamini.sharding.SingleDeviceSharding(xlamini.devices()[1])
    assert xlamini.device_put(x, Format(ROWS, here)).sharding == here
    assert xlamini.device_put(x, Format(Layout.AUTO)).shape == (2, 3)
    run = jit(lambda x: x + 1, in_shardings=Format(Layout.AUTO, here), out_shardings=Format(ROWS, here))
    assert run(x).format == Format(Layout((0, 1), ()), here)
    compiled = jit(lambda a, b: {"sum": a + b}).lower(x, x).compile()
    (a, b), kwargs = compiled.input_formats
    assert a == b == compiled.output_formats["sum"] and a.layout == Layout((0, 1), ()) and kwargs == {}


def test_a_constraint_takes_a_format() -> None:
    place = xlamini.NamedSharding(xlamini.sharding.Mesh(xlamini.devices(), ("x",)), xlamini.P("x"))
    x = jnp.arange(16.0).reshape(8, 2)
    constrain = lambda x: xlamini.lax.with_sharding_constraint(2 * x, Format(COLUMNS, place))
    program = xlamini.make_jaxpr(constrain)(x)
    assert [e.primitive.name for e in program.eqns] == ["mul", "sharding_constraint", "layout_constraint"]
    for out in (jit(constrain)(x), constrain(x)):  # arrays are in row-major order
        np.testing.assert_array_equal(out, 2 * np.arange(16.0).reshape(8, 2))
        assert out.format == Format(Layout((0, 1), ()), place)


def test_equality_and_text() -> None:
    assert Layout([1, 0], [[8, 128]]) == Layout((1, 0), ((8, 128),)) != COLUMNS
    assert len({COLUMNS, Layout((1, 0)), Format(COLUMNS), Format(Layout((1, 0)))}) == 2
    assert repr(Format(Layout.AUTO)) == "Format(layout=AUTO, sharding=None)"


@pytest.mark.parametrize("call, error, text", [
    (lambda x: Layout((0, 0)), ValueError, r"a permutation of the dimensions, got \(0, 0\)"),
    (lambda x: Format(3), TypeError, "layout must be a Layout, Layout.AUTO or None, got 3"),
    (lambda x: Format(ROWS, 3), TypeError, "sharding must be a sharding or None, got 3"),
    (lambda x: xlamini.device_put(x, Format(Layout((0,)))), ValueError, "device_put: .* of 1 dimensions, .* has 2"),
    (lambda x: jit(constrained, in_shardings=Format(Layout((0,))))(x), ValueError, "in_shardings .* of 1 dimensions"),
    (lambda x: jit(constrained, out_shardings=Format(Layout((0,))))(x), ValueError, "out_shardings .* of 1 dimensions"),
    (lambda x: xlamini.device_put(x, Format(Layout((1, 0), ((8,),)))), NotImplementedError, "compiler chooses tiles"),
    (lambda x: xlamini.device_put(random.split(random.key(0), (2, 3)), Format(COLUMNS)), TypeError, "no order"),
    (
        lambda x: xlamini.make_array_from_callback((2, 3), Format(COLUMNS, x.sharding), lambda i: np.ones((2, 3))),
        NotImplementedError,
        "arrays are made in row-major order here",
    ),
    (lambda x: with_layout_constraint(x, Layout((0,))), ValueError, "has 1 dimensions, the array 2"),
    (lambda x: xlamini.lax.with_sharding_constraint(x, Format(Layout((0,)))), ValueError, "has 1 dim"),
    (lambda x: with_layout_constraint(x, Layout.AUTO), TypeError, "a Layout is needed, got AUTO"),
    (lambda x: with_layout_constraint("a", ROWS), TypeError, "must be an array or a number, got str"),
])  # fmt: skip
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call(jnp.ones((2, 3)))
