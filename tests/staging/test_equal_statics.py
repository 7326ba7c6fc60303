"""Values that Python calls equal but that mean other programs, 0.0 and -0.0, as static arguments and as options."""
from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import numpy as jnp
from xlamini.core.caching.ambiguity import exact_key, is_ambiguous

ONE = np.float32(1)


@dataclasses.dataclass(frozen=True)
class Scale:
    by: Any


HELD = {
    "number": (lambda s: s, lambda held: held),
    "float32": (np.float32, lambda held: held),
    "complex": (lambda s: complex(s, 1), lambda held: held.real),
    "imaginary part": (lambda s: complex(1, s), lambda held: held.imag),
    "tuple": (lambda s: ((1, s), "a"), lambda held: held[0][1]),
    "frozenset": (lambda s: frozenset([s]), lambda held: next(iter(held))),
    "dataclass": (Scale, lambda held: held.by),
    "tuple of dataclasses": (lambda s: (Scale((s,)),), lambda held: held[0].by[0]),
}


@pytest.mark.parametrize("name", HELD)
def test_static_zeros_of_both_signs(name: str) -> None:
    hold, number = HELD[name]
    by_position = xlamini.jit(lambda held, x: x / np.float32(number(held)), static_argnums=0)
    by_name = xlamini.jit(lambda x, held: x / np.float32(number(held)), static_argnames="held")
    for zero in (0.0, -0.0, 0.0, -0.0):
        wanted = math.copysign(math.inf, zero)
        assert by_position(hold(zero), ONE) == wanted
        assert by_name(ONE, held=hold(zero)) == wanted
        assert by_position.lower(hold(zero), ONE).compile()(ONE) == wanted
        assert xlamini.grad(by_position, argnums=1)(hold(zero), ONE) == wanted


def test_a_nan_is_known_again() -> None:
    traced = []
    f = xlamini.jit(lambda s, x: traced.append(s) or x * s[0], static_argnums=0)
    for _ in range(3):
        assert np.isnan(f((float("nan"),), ONE))
    assert len(traced) == 1


@pytest.mark.parametrize("zeros", [(0.0, -0.0), (-0.0, 0.0)])
def test_fill_values(zeros: tuple[float, float]) -> None:
    x = jnp.ones(2)
    for zero in zeros:
        wanted = math.copysign(math.inf, zero)
        assert 1 / jnp.take(x, 5, mode="fill", fill_value=zero) == wanted
        assert 1 / x.at[5].get(mode="fill", fill_value=zero) == wanted
        assert xlamini.jit(lambda x, zero=zero: 1 / x.at[5].get(mode="fill", fill_value=zero))(x) == wanted


def test_what_is_ambiguous() -> None:
    for x in (0.0, -0.0, math.nan, 0j, np.float64(0), (1, (0.0,)), Scale(0.0), frozenset([0.0])):
        assert is_ambiguous(x)
    for x in (0, 1, True, 1.0, 1j + 1, "0.0", None, (1, 2.5), Scale(1), Scale, object()):
        assert not is_ambiguous(x)
        assert exact_key(x) is x
    assert exact_key((0.0, 1)) != exact_key((-0.0, 1))
    assert exact_key((0.0, 1)) != exact_key((0.0, True))
    assert exact_key(Scale(math.nan)) == exact_key(Scale(float("nan")))
