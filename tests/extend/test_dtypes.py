"""A dtype of a user: its elements are moved about by all operations and transformations, and computed with by rules."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import extend, grad, jit, lax, numpy as jnp, vmap

INTERVAL = extend.define_dtype("interval", (2,), "float32")
PARTS = np.array([[0, 1], [2, 3], [4, 7]], np.float32)


@pytest.fixture
def xs() -> Any:
    return extend.packed(PARTS, INTERVAL)


def plus(x: Any, y: Any) -> Any:
    return extend.packed(extend.unpacked(x) + extend.unpacked(y), INTERVAL)


def parts(x: Any) -> np.ndarray:
    return np.asarray(extend.unpacked(x))


def test_an_array_of_it(xs: Any) -> None:
    assert (xs.dtype, xs.shape, str(INTERVAL)) == (INTERVAL, (3,), "interval")
    assert isinstance(xs, xlamini.Array) and xlamini.typeof(xs).dtype == INTERVAL
    assert jnp.issubdtype(xs.dtype, xlamini.dtypes.extended) and not jnp.issubdtype(xs.dtype, xlamini.dtypes.prng_key)
    assert "interval[3]" in str(xlamini.make_jaxpr(lambda x: x[:2])(xs))
    np.testing.assert_array_equal(parts(xs), PARTS)


MOVES: dict[str, tuple[Any, Any]] = {
    "index": (lambda x: x[1], PARTS[1]),
    "slice": (lambda x: x[::-1], PARTS[::-1]),
    "reshape": (lambda x: x.reshape(3, 1), PARTS.reshape(3, 1, 2)),
    "stack": (lambda x: jnp.stack([x, x]), np.stack([PARTS, PARTS])),
    "where": (lambda x: jnp.where(np.array([True, False, True]), x, x[1]), PARTS),
    "take": (lambda x: x[jnp.array([2, 0])], PARTS[[2, 0]]),
    "plus": (lambda x: plus(x, x), 2 * PARTS),
    "vmap": (lambda x: vmap(plus)(x, x[::-1]), PARTS + PARTS[::-1]),
    "vmap of one": (lambda x: vmap(plus, (0, None))(x, x[1]), PARTS + PARTS[1]),
    "scan": (lambda x: lax.scan(lambda c, a: (plus(c, a), c), x[0], x[1:])[0], PARTS.sum(0)),
    "cond": (lambda x: lax.cond(True, lambda v: plus(v, v), lambda v: v, x), 2 * PARTS),
    "while": (lambda x: lax.fori_loop(0, 3, lambda i, v: plus(v, x), x), 4 * PARTS),
    "checkpoint": (lambda x: xlamini.checkpoint(plus)(x, x), 2 * PARTS),
}


@pytest.mark.parametrize("name", MOVES)
def test_elements_are_moved(xs: Any, name: str) -> None:
    move, wanted = MOVES[name]
    for found in (move(xs), jit(move)(xs)):
        assert found.dtype == INTERVAL
        np.testing.assert_array_equal(parts(found), wanted)


def test_a_derivative_is_not_lost_silently(xs: Any) -> None:
    def width(low: Any) -> Any:
        x = extend.packed(jnp.stack([low, 1.0]), INTERVAL)
        return extend.unpacked(x)[0]

    with pytest.raises(TypeError, match="elements of interval have no tangents, so a derivative would be lost"):
        grad(width)(0.5)
    assert grad(lambda low: low * width(lax.stop_gradient(low)))(0.5) == 0.5
    assert grad(lambda t: t * parts(xs[1]).sum())(1.0) == 5.0


def test_elements_have_no_arithmetic(xs: Any) -> None:
    with pytest.raises(TypeError):
        xs + xs
    with pytest.raises(TypeError, match="interval"):
        jit(lambda x: x + x)(xs)


def test_bad_parts() -> None:
    with pytest.raises(TypeError, match=r"packed: an element of interval is float32\[2\], .* are float32\[3\]"):
        extend.packed(jnp.ones(3), INTERVAL)
    with pytest.raises(TypeError, match=r"but the parts are int32\[2\]"):
        extend.packed(jnp.ones(2, jnp.int32), INTERVAL)
    with pytest.raises(TypeError, match=r"unpacked takes an array of an extended dtype, got float32\[2\]"):
        extend.unpacked(jnp.ones(2))


LARGEST = extend.define_dtype("largest", (), "float32", add=jnp.maximum, zero=-np.inf)
"""Numbers whose tangents are not added: the largest is taken."""


def number(x: Any) -> Any:
    return lax.convert_element_type(x, "float32")


def used_twice(x: Any) -> Any:
    y = lax.convert_element_type(x, LARGEST)
    return 2 * number(y) + 5 * number(y)


def used_in_a_loop(x: Any) -> Any:
    y = lax.convert_element_type(x, LARGEST)
    return lax.scan(lambda total, factor: (total + factor * number(y), None), 0.0, jnp.array([2.0, 7.0, 3.0]))[0]


def used_in_a_branch(x: Any) -> Any:
    y = lax.convert_element_type(x, LARGEST)
    return lax.cond(number(y) > 2, lambda: 4 * number(y), lambda: 0.0) + 3 * number(y)


@pytest.mark.parametrize(
    ("loss", "value", "slope"), [(used_twice, 21, 5), (used_in_a_loop, 36, 7), (used_in_a_branch, 21, 4)]
)
def test_cotangents_are_added_as_the_dtype_says(loss: Any, value: float, slope: float) -> None:
    for transformed in (loss, jit(loss), lambda x: xlamini.checkpoint(loss)(x)):
        assert transformed(3.0) == value
        assert grad(transformed)(3.0) == slope
    np.testing.assert_array_equal(vmap(grad(loss))(jnp.array([3.0, 4.0])), [slope, slope])
    assert xlamini.jvp(loss, (3.0,), (1.0,))[1] == value / 3  # the tangents of numbers are added as ever


def test_cotangents_of_a_custom_rule_are_elements() -> None:
    @xlamini.custom_vjp
    def scaled(x: Any, scale: Any) -> Any:
        return x

    scaled.defvjp(lambda x, s: (x, (x, s)), lambda kept, ct: (ct, lax.convert_element_type(2 * kept[0], LARGEST)))

    def loss(x: Any, scale: Any) -> Any:
        scale = lax.convert_element_type(scale, LARGEST)
        return lax.scan(lambda c, _: (scaled(c, scale) - 1, None), x, length=3)[0]

    assert grad(loss, argnums=1)(5.0, 1.0) == 10.0
    assert jit(grad(loss, argnums=1))(-5.0, 1.0) == -10.0
    # what is not used has the zero of the dtype
    assert grad(lambda x: 0.0 * x + number(lax.convert_element_type(x, LARGEST)) * 0)(1.0) == 0.0


def test_single_numbers_are_moved_and_converted() -> None:
    x = lax.convert_element_type(np.arange(3, dtype=np.float32), LARGEST)
    assert (x.dtype, x.shape) == (LARGEST, (3,))
    for f in (lambda x: x[1:], jit(lambda x: x[1:])):
        np.testing.assert_array_equal(extend.unpacked(f(x)), [1, 2])
    np.testing.assert_array_equal(number(jnp.stack([x, x])), [[0, 1, 2]] * 2)
    np.testing.assert_array_equal(number(extend.packed(jnp.ones(2), LARGEST)), [1, 1])


def test_bad_conversions_and_dtypes(xs: Any) -> None:
    for x, dtype in ((xs, "float32"), (jnp.arange(3), LARGEST), (jnp.zeros((3, 2)), INTERVAL)):
        with pytest.raises(ValueError, match=r"convert_element_type: elements of .* are not converted to"):
            lax.convert_element_type(x, dtype)
    with pytest.raises(ValueError, match=r"physical_shape=\(\) is needed with add, got \(2,\)"):
        extend.define_dtype("pair", (2,), "float32", add=jnp.add)
