"""The formulas that the CPU has in place of XLA's ops: their errors, their edges, and where they are used."""
from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import lax

pytestmark = pytest.mark.usefixtures("optimized")

CIRCULAR = {"sin": np.sin, "cos": np.cos, "tan": np.tan}
INVERSE = {"asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "cbrt": np.cbrt}
ONE_ARGUMENT: dict[str, Callable[..., Any]] = CIRCULAR | INVERSE

# The largest errors seen are a little smaller: in float32 of all numbers there are, in float64 of a million.
ULPS = {"float32": dict.fromkeys(ONE_ARGUMENT, 0.52), "float64": dict.fromkeys(ONE_ARGUMENT, 1.2) | {"cbrt": 0.7}}

PRECISE = np.finfo(np.longdouble).nmant >= 63
"""Whether NumPy has floats of more precision than float64."""

# Values in float64 computed by mpmath with 300 bits: near multiples of pi / 2, beyond the reduction, at joints.
RECORDED = {
    "sin": {
        1.0: 0.8414709848078965, 1.5707963267948966: 1.0, 3.141592653589793: 1.2246467991473532e-16,
        1048575.0: -0.6156211730587509, 300000.0: 0.10706364941313236, 5.319372648326541e255: 1.0,
        1e22: -0.8522008497671888, 8.98846567431158e307: 0.563127779850884,
    },
    "cos": {
        0.5: 0.8775825618903728, 1.5707963267948966: 6.123233995736766e-17, 4.71238898038469: -1.8369701987210297e-16,
        1572.3671231216915: -4.43163076048424e-15, 1048574.0923776457: -1.1837114658485184e-11,
        5.319372648326541e255: -4.687165924254628e-19, 1e22: 0.523214785395139, 8.98846567431158e307: -0.826369834614148
    },
    "tan": {
        0.5: 0.5463024898437905, 1.5707963267948966: 1.633123935319537e16, 4.71238898038469: 5443746451065123.0,
        1572.3671231216915: -225650568390479.1, 1048574.0923776457: 84480046772.47687,
        5.319372648326541e255: -2.133485385753704e18, 1e22: -1.6287782256068988,
    },
    "atan": {0.5: 0.4636476090008061, 0.5468750001: 0.5004408132242721, 3.0: 1.2490457723982544},
    "asin": {0.1: 0.1001674211615598, 0.4999999: 0.5235986601282488, 0.5000001: 0.5235988910683566},
    "acos": {0.1: 1.4706289056333368, 0.75: 0.7227342478134157, 0.999999999: 4.4721358921319356e-05, 1.0: 0.0},
    "cbrt": {
        2.0: 1.2599210498948732, 1e-310: 4.641588833612774e-104, 5e-324: 1.7031839360032603e-108,
        1.7e308: 5.539658256754465e102,
    },
}


def computed(name: str, *operands: np.ndarray) -> np.ndarray:
    """What the program gives; few elements are repeated until there are enough for the formula."""
    size = operands[0].size
    repeated = [np.resize(x, max(size, 5000)) if size else np.ones(5000) for x in operands]
    with xlamini.enable_x64(True):
        return np.asarray(xlamini.jit(getattr(lax, name))(*repeated))[:size]


def ulps(found: np.ndarray, exact: np.ndarray) -> float:
    """The largest error in units in the last place of the exact value; NaN must meet NaN."""
    digits = np.finfo(found.dtype)
    _, exponents = np.frexp(exact)
    unit = np.ldexp(exact.dtype.type(1), np.maximum(exponents - digits.nmant - 1, digits.minexp - digits.nmant))
    np.testing.assert_array_equal(np.isnan(found), np.isnan(exact))
    finite = np.isfinite(exact)
    return float(np.max(np.abs(found[finite].astype(exact.dtype) - exact[finite]) / unit[finite]))


def some_float32() -> np.ndarray:
    """Bit patterns evenly spread over all finite float32, of both signs, and what is near multiples of pi / 2."""
    patterns = np.arange(0, 0x7F800000, 7919, dtype=np.uint32)
    quarters = np.arange(1, 50_000) * (np.pi / 2)
    x = np.concatenate([patterns.view(np.float32), quarters.astype(np.float32)])
    return np.concatenate([x, -x])


@pytest.mark.parametrize("name", ONE_ARGUMENT)
def test_float32_is_rounded_nearly_correctly(name: str) -> None:
    x = some_float32()
    if name in ("asin", "acos"):
        x = x[np.abs(x) <= 1]
    assert ulps(computed(name, x), ONE_ARGUMENT[name](x.astype(np.float64))) <= ULPS["float32"][name]


def some_float64(name: str) -> np.ndarray:
    chosen = np.random.default_rng(0)
    count = 100_000
    if name in CIRCULAR:
        quarters = chosen.integers(1, 2**19, count) * (np.pi / 2)
        return np.concatenate([chosen.normal(0, 3, count), chosen.uniform(-(2**20), 2**20, count), quarters])
    if name in ("asin", "acos"):
        near_one = 1 - np.exp2(chosen.uniform(-50, 0, count))
        return np.concatenate([chosen.uniform(-1, 1, count), near_one, -near_one])
    wide = chosen.normal(size=count) * np.exp2(chosen.uniform(-200, 200, count))
    return np.concatenate([chosen.normal(0, 1, count), chosen.uniform(0.4, 0.7, count), wide])


@pytest.mark.parametrize("name", ONE_ARGUMENT)
@pytest.mark.skipif(not PRECISE, reason="NumPy has no floats that are more precise than float64 here")
def test_float64_is_off_by_little_more_than_rounding(name: str) -> None:
    x = some_float64(name)
    assert ulps(computed(name, x), ONE_ARGUMENT[name](x.astype(np.longdouble))) <= ULPS["float64"][name]


@pytest.mark.parametrize("name", RECORDED)
def test_float64_where_it_is_hard(name: str) -> None:
    points = np.array(list(RECORDED[name]))
    exact = np.array(list(RECORDED[name].values()))
    large = points > 2**20  # left to XLA's op, which for the hardest of all, 5.3e255, is off by up to 14 ulp
    for chosen, ulp in ((large, 16), (~large, 1)):
        error = np.abs(computed(name, points[chosen]) - exact[chosen])
        assert (error <= ulp * np.spacing(np.abs(exact[chosen]))).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_atan2_of_points_all_around(dtype: str) -> None:
    chosen = np.random.default_rng(1)
    y, x = (chosen.normal(size=300_000) * np.exp2(chosen.uniform(-3, 3, 300_000)) for _ in range(2))
    y, x = y.astype(dtype), x.astype(dtype)
    wide = np.float64 if dtype == "float32" or not PRECISE else np.longdouble
    limit = 0.52 if dtype == "float32" else 1.2 if PRECISE else 2.5
    assert ulps(computed("atan2", y, x), np.arctan2(y.astype(wide), x.astype(wide))) <= limit


def special(dtype: str) -> np.ndarray:
    digits = np.finfo(dtype)
    usual = [0, 0.5, 1, 2, np.inf, digits.tiny, digits.max, digits.smallest_subnormal, digits.tiny / 3, 4 * digits.tiny]
    return np.array([*usual, *(-x for x in usual), np.nan], dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ONE_ARGUMENT)
def test_special_numbers(name: str, dtype: str) -> None:
    """Signs of zeros, infinities, NaN and subnormal numbers, which XLA's own cbrt and asin take for something else."""
    x = special(dtype)
    with np.errstate(invalid="ignore"):
        expected = ONE_ARGUMENT[name](x.astype(np.float64)).astype(dtype)
    found = computed(name, x)
    assert ulps(found, expected) <= 1
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(expected)[numbers])
    exact = np.isinf(expected) | (expected == 0) | (np.abs(expected) == 1)
    np.testing.assert_array_equal(found[exact], expected[exact])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_special_points(dtype: str) -> None:
    y, x = (v.ravel() for v in np.meshgrid(special(dtype), special(dtype)))
    with np.errstate(under="ignore"):
        expected = np.arctan2(y.astype(np.float64), x.astype(np.float64)).astype(dtype)
    found = computed("atan2", y, x)
    assert ulps(found, expected) <= 1
    exact = np.abs(expected) < np.finfo(dtype).tiny  # subnormal angles are correctly rounded
    np.testing.assert_array_equal(found[exact], expected[exact])
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[numbers], np.signbit(expected)[numbers])


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_subnormal_angles(dtype: str) -> None:
    digits, chosen = np.finfo(dtype), np.random.default_rng(2)
    x = np.exp2(chosen.uniform(-3, digits.maxexp - 1, 3000)).astype(dtype)
    angle = np.exp2(chosen.uniform(np.log2(float(digits.smallest_subnormal)) - 1, digits.minexp, 3000))
    y = (angle * x).astype(dtype)
    found = computed("atan2", y, x)
    expected = np.arctan2(y.astype(np.longdouble), x.astype(np.longdouble)).astype(dtype)
    assert np.abs(found - expected).max() <= (0 if dtype == "float32" else digits.smallest_subnormal)
    assert (found > 0).sum() > 2800


@pytest.mark.full
def test_a_float64_beyond_the_reduction_spoils_no_other() -> None:
    x = np.linspace(-10, 10, 1000)
    large = np.array([1e300, -1e22, np.inf, -np.inf, np.nan])
    for name in CIRCULAR:
        found = computed(name, np.concatenate([x, large]))
        np.testing.assert_allclose(found[:1000], CIRCULAR[name](x), rtol=1e-15, atol=1e-15)
        np.testing.assert_allclose(found[1000:1002], CIRCULAR[name](large[:2]), rtol=1e-15)
        assert np.isnan(found[1002:]).all()


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
@pytest.mark.parametrize("name", ONE_ARGUMENT)
def test_narrow_floats_are_computed_in_float32(name: str, dtype: Any) -> None:
    x = np.arange(2**16, dtype=np.uint16).view(dtype)
    found = computed(name, x)
    assert found.dtype == dtype
    with np.errstate(over="ignore", invalid="ignore"):
        expected = computed(name, x.astype(np.float32)).astype(dtype)
    np.testing.assert_array_equal(found.astype(np.float32), expected.astype(np.float32))


SHAPES = [(), (1,), (0,), (0, 5), (3, 7), (2, 3, 5), (63,), (64,), (600,), (1, 1024)]


@pytest.mark.sample(20)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_any_shape(shape: tuple[int, ...], dtype: str) -> None:
    x = np.random.default_rng(2).uniform(-1, 1, shape).astype(dtype)
    with xlamini.enable_x64(True):
        for name, reference in ONE_ARGUMENT.items():
            found = getattr(lax, name)(x)
            assert (found.shape, found.dtype) == (x.shape, x.dtype)
            np.testing.assert_allclose(found, reference(x), rtol=4 * float(np.finfo(dtype).eps))


def lowered(f: Callable[..., Any], *operands: Any, platform: str = "cpu") -> str:
    return xlamini.jit(f).trace(*operands).lower(lowering_platforms=(platform,)).as_text()


XLAS = {
    "sin": "stablehlo.sine", "cos": "stablehlo.cosine", "tan": "stablehlo.tan", "atan2": "stablehlo.atan2",
    "cbrt": "stablehlo.cbrt", "asin": "chlo.asin", "acos": "chlo.acos", "atan": "chlo.atan",
}


@pytest.mark.parametrize("name", XLAS)
def test_other_platforms_keep_xlas_op(name: str) -> None:
    operands = [jnp.ones(5000)] * (2 if name == "atan2" else 1)
    operation = getattr(lax, name)
    for platform in ("cuda", "tpu"):
        text = lowered(operation, *operands, platform=platform)
        assert f"{XLAS[name]} " in text and "call" not in text
    assert XLAS[name] not in lowered(operation, *operands)


@pytest.mark.parametrize(("name", "few"), [("sin", 4096), ("cos", 4096), ("tan", 1024), ("atan", 512), ("atan2", 0)])
def test_few_float32_keep_xlas_op(name: str, few: int) -> None:
    """Where it is as precise: elsewhere, and in float64, a formula serves one element too."""
    arity, operation = 2 if name == "atan2" else 1, getattr(lax, name)
    for size, keeps in ((few - 1, True), (few or 1, False)):
        if size > 0:
            assert (XLAS[name] in lowered(operation, *[jnp.ones(size)] * arity)) == keeps
    with xlamini.enable_x64(True):
        assert (XLAS[name] in lowered(operation, *[jnp.ones(1)] * arity)) == (name in CIRCULAR)


def test_complex_numbers_and_a_chosen_accuracy_keep_xlas_op() -> None:
    assert "stablehlo.tan " in lowered(lax.tan, jnp.ones(5000, "complex64"))
    assert "stablehlo.sine" in lowered(lambda x: lax.sin(x, accuracy=lax.AccuracyMode.HIGHEST), jnp.ones(5000))


def test_one_function_of_the_module_serves_all_equations() -> None:
    def f(x: Any) -> tuple[Any, Any]:
        for _ in range(20):
            x = lax.sin(x)
        return x, lax.sin(jnp.ones((50, 100)))

    text = lowered(f, jnp.ones(5000))
    assert text.count("call @sin(") == 20 and text.count("call @sin_1(") == 1
    assert text.count("func.func private") == 2


def test_the_jaxpr_shows_nothing_of_it() -> None:
    jaxpr = xlamini.make_jaxpr(lax.cbrt)(jnp.ones(5000))
    assert str(jaxpr) == "{ lambda ; a:f32[5000]. let b:f32[5000] = cbrt a in (b,) }"


def test_compiled_operations_bear_the_ids_of_their_own_equations() -> None:
    compiled = xlamini.jit(lambda x: lax.sin(lax.cos(lax.sin(x)))).lower(jnp.ones(5000)).compile().as_text()
    found = set(re.findall(r'op_name="jit\([^"]*/(\w+#e\d+)"', compiled))
    assert {"sin#e0", "cos#e1", "sin#e2"} <= found


def test_it_is_computed_once_for_all_rows_that_it_is_broadcast_to() -> None:
    def f(x: Any, y: Any) -> Any:
        return jnp.sin(x)[None, :] * y

    compiled = xlamini.jit(f).lower(jnp.ones(5000), jnp.ones((200, 5000))).compile().as_text()
    assert "f64[5000]" in compiled and "f64[200,5000]" not in compiled


@pytest.mark.full
def test_derivatives_and_batching_go_through_it() -> None:
    x = jnp.linspace(-3, 3, 101)
    np.testing.assert_array_equal(xlamini.grad(lambda x: lax.sin(x).sum())(x), lax.cos(x))
    slopes = xlamini.vmap(xlamini.grad(lax.tan))(x)
    np.testing.assert_allclose(slopes, 1 / np.cos(x) ** 2, rtol=1e-6)
    np.testing.assert_array_equal(xlamini.vmap(lax.atan2, (0, None))(x, x), lax.atan2(x[:, None], x[None, :]))
