"""The formulas that the CPU has in float64 only: their errors, their edges, and that other dtypes keep XLA's op."""
from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from tests.primitives.test_cpu_math import PRECISE, lowered, special, ulps
from xlamini import lax

pytestmark = pytest.mark.usefixtures("optimized")

REFERENCE: dict[str, Callable[..., Any]] = {
    "log1p": np.log1p, "atanh": np.arctanh, "sinh": np.sinh, "cosh": np.cosh, "exp2": np.exp2,
}
XLAS = {
    "log1p": "stablehlo.log_plus_one", "atanh": "chlo.atanh", "sinh": "chlo.sinh", "cosh": "chlo.cosh",
    "exp2": "stablehlo.exponential",
}

# A little more than the largest errors seen, of twenty million numbers each.
ULPS = {"log1p": 1.0, "atanh": 1.8, "sinh": 1.6, "cosh": 1.7, "exp2": 1.2}

# Values computed by mpmath with 300 bits: at joints, at ends, and where XLA's op or these formulas err most.
RECORDED = {
    "log1p": {
        1e-17: 1e-17, 1e-9: 9.999999995e-10, -0.41419605377868707: -0.5347701081459959, 0.41421356: 0.34657358860194104,
        -0.29851211: -0.3545516425964692, 0.5: 0.4054651081081644, -0.9999999999999999: -36.7368005696771,
        3e15: 35.6373886835788, 1.7e308: 709.7268368932282,
    },
    "atanh": {
        1e-9: 1e-9, 0.12431706341891546: 0.12496349734546605, 0.41420459498147233: 0.44067596895906774,
        0.4999999: 0.5493060110007304, 0.5: 0.5493061443340549, 0.9999999999999999: 18.714973875118524,
        -0.75: -0.9729550745276566,
    },
    "sinh": {
        1e-9: 1e-9, 0.34657359: 0.3535533902963179, 0.35: 0.3571897294372719, -1.0: -1.1752011936438014,
        18.369369155499353: 47499131.03983898, 37.42927: 9001096691551410.0, 690.3744724010055: 3.3480644918014897e299,
        710.4758600739439: 1.7976931348621744e308,
    },
    "cosh": {
        1e-9: 1.0, 0.34657359: 1.060660171680836, 0.35: 1.0618778191559852, 1.0: 1.5430806348152437,
        18.36840528348303: 47453370.0140589, -690.3744724010055: 3.3480644918014897e299,
        710.4758600739439: 1.7976931348621744e308,
    },
    "exp2": {
        1e-17: 1.0, 0.5249935478930815: 1.4389271447405216, 1.5: 2.8284271247461903,
        -603.4780381258632: 2.1627623451175245e-182, 1023.9999999999999: 1.7976931348621742e308,
        -1022.0: 2.2250738585072014e-308, -1022.3: 1.8073215736421466e-308, -1060.25: 6.8067e-320, -1074.9: 5e-324,
        -1074.999: 5e-324,
    },
}


def computed(name: str, x: np.ndarray) -> np.ndarray:
    with xlamini.enable_x64(True):
        return np.asarray(xlamini.jit(getattr(lax, name))(x))


def some_numbers(name: str) -> np.ndarray:
    """Of all sizes, dense near 0, and near what each formula treats in a way of its own."""
    chosen, count = np.random.default_rng(0), 100_000
    small = np.exp(chosen.uniform(-40, 0, count))
    if name == "log1p":
        parts = [chosen.uniform(-1, 1, count), np.exp(chosen.uniform(0, 709, count)), -small, small - 1]
    elif name == "atanh":
        parts = [chosen.uniform(-1, 1, count), -small, 1 - small]
    elif name == "exp2":
        joints = chosen.integers(-1080, 1024, count) + 0.5 + chosen.normal(0, 1e-9, count)
        parts = [chosen.uniform(-1080, 1024, count), chosen.uniform(-2, 2, count), -small, joints]
    else:
        joints = (chosen.integers(0, 60, count) + 0.5) * math.log(2) + chosen.normal(0, 1e-3, count)
        parts = [chosen.uniform(-711, 711, count), chosen.uniform(-30, 30, count), -small, joints]
    return np.concatenate([*parts, small])


@pytest.mark.parametrize("name", REFERENCE)
@pytest.mark.skipif(not PRECISE, reason="NumPy has no floats that are more precise than float64 here")
def test_the_error_is_below_two_units_in_the_last_place(name: str) -> None:
    x = some_numbers(name)
    with np.errstate(divide="ignore"):
        exact = REFERENCE[name](x.astype(np.longdouble))
    finite = np.abs(exact) <= np.finfo(np.float64).max  # elsewhere it is infinite
    found = computed(name, x)
    np.testing.assert_array_equal(np.isfinite(found), finite)
    assert ulps(found[finite], exact[finite]) <= ULPS[name]


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_values(name: str) -> None:
    exact = np.array(list(RECORDED[name].values()))
    assert ulps(computed(name, np.array(list(RECORDED[name]))), exact) <= 2


@pytest.mark.parametrize("name", REFERENCE)
def test_special_numbers(name: str) -> None:
    """Zeros of both signs, infinities, NaN, subnormal numbers, and the ends of the domains."""
    x = np.concatenate([special("float64"), [-1074, -1075, -1075.1, -1076, 1024, 710.475860073944, 1 + 2**-52]])
    with np.errstate(invalid="ignore", divide="ignore", over="ignore", under="ignore"):
        expected = REFERENCE[name](x)
    found = computed(name, x)
    assert ulps(found, expected) <= 1
    exact = ~np.isnan(expected) & ((np.abs(x) < 1e-300) | np.isinf(expected) | (expected == 0))
    np.testing.assert_array_equal(found[exact], expected[exact])
    np.testing.assert_array_equal(np.signbit(found)[exact], np.signbit(expected)[exact])


def test_powers_of_two_are_exact() -> None:
    whole = np.arange(-1074, 1024)
    np.testing.assert_array_equal(computed("exp2", whole.astype(np.float64)), np.ldexp(1.0, whole))


@pytest.mark.parametrize("name", XLAS)
def test_other_dtypes_and_platforms_keep_xlas_op(name: str) -> None:
    operation = getattr(lax, name)
    with xlamini.enable_x64(True):
        double = jnp.full(5, 0.5, "float64")
        assert XLAS[name] not in lowered(operation, double)
        for platform in ("cuda", "tpu"):
            assert f"{XLAS[name]} " in lowered(operation, double, platform=platform)
        for dtype in ("float32", "bfloat16", *(["complex128"] if name not in ("sinh", "cosh") else [])):
            assert f"{XLAS[name]} " in lowered(operation, jnp.full(5, 0.5, dtype))


@pytest.mark.parametrize("name", ["log1p", "exp2"])
def test_a_chosen_accuracy_keeps_xlas_op(name: str) -> None:
    with xlamini.enable_x64(True):
        text = lowered(lambda x: getattr(lax, name)(x, accuracy=lax.AccuracyMode.HIGHEST), jnp.ones(5, "float64"))
    assert XLAS[name] in text and "mode = #stablehlo.result_accuracy_mode<HIGHEST>" in text


@pytest.mark.parametrize("name", REFERENCE)
def test_derivatives(name: str) -> None:
    slopes: dict[str, Callable[..., Any]] = {
        "log1p": lambda x: 1 / (1 + x), "atanh": lambda x: 1 / (1 - x * x), "sinh": np.cosh, "cosh": np.sinh,
        "exp2": lambda x: np.exp2(x) * math.log(2),
    }
    x = np.linspace(-0.9, 0.9, 101)
    with xlamini.enable_x64(True):
        found = xlamini.vmap(xlamini.grad(getattr(lax, name)))(x)
    np.testing.assert_allclose(found, slopes[name](x), rtol=1e-14, atol=1e-15)
