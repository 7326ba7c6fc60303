"""What the examples of a vmap share is given to the function as it is, as in JAX."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from tests.support.checks import assert_close
from xlamini import lax
from xlamini.staging.compile.compile_request import CompileRequest
from xlamini.staging.run.eager import program_cache

F32 = np.float32
RAMP = np.arange(6, dtype=F32).reshape(2, 3)


def test_a_number_that_examples_share_may_be_static_inside() -> None:
    stretched = xlamini.jit(lambda x, n: x * np.ones(n, F32), static_argnums=1)
    mapped = xlamini.vmap(stretched, (0, None))
    x = np.arange(2, dtype=F32)
    expected = np.arange(2)[:, None] * np.ones(3)
    for found in (
        mapped(x, 3),
        mapped(x, np.int32(3)),
        xlamini.jit(lambda x: mapped(x, 3))(x),
        xlamini.vmap(mapped, (0, None))(x[None], 3)[0],
        xlamini.vmap(lambda x, n: stretched(x, n=n), (0, None))(x, 3),
    ):
        assert_close(found, expected, 0)
    assert_close(xlamini.grad(lambda x, n: mapped(x, n).sum())(x, 3), [3, 3], 0)
    with pytest.raises(ValueError, match="static argument 'n' of <lambda> is of type Tracer"):
        xlamini.jit(mapped)(x, 3)
    with pytest.raises(ValueError, match="static argument 'n' of <lambda> is of type ndarray"):  # in JAX too
        mapped(x, np.array(3))


class Power:
    """A pytree node that keeps its exponent among its metadata."""

    def __init__(self, base: Any, exponent: Any):
        self.base, self.exponent = base, exponent

    def __call__(self, x: Any) -> Any:
        return self.base * x**self.exponent


xlamini.tree_util.register_pytree_node(Power, lambda p: ((p.base,), p.exponent), lambda n, bases: Power(*bases, n))


@pytest.mark.parametrize("exponent", [3, 2.5, True])
def test_a_number_that_examples_share_may_be_metadata_of_the_result(exponent: Any) -> None:
    base = np.arange(3, dtype=F32)
    made = xlamini.vmap(Power, (0, None))(base, exponent)
    assert type(made.exponent) is type(exponent) and made.exponent == exponent
    assert xlamini.tree.structure(made) == xlamini.tree.structure(Power(base, exponent))
    assert_close(xlamini.vmap(lambda p: p(2.0))(made), base * 2.0**exponent, 1e-6)
    slope = xlamini.grad(lambda base: xlamini.vmap(Power, (0, None))(base, exponent)(2.0).sum())(base)
    assert_close(slope, np.full(3, 2.0**exponent, F32), 1e-6)


@pytest.mark.parametrize("shared", [2, 2.0, 2j, False, np.float32(2), np.ones(2), xlamini.numpy.ones(2), "two", None])
def test_what_examples_share_is_given_as_it_is(shared: Any) -> None:
    seen = []
    xlamini.vmap(lambda x, y: seen.append(y) or x, (0, None))(RAMP, shared)
    assert seen[0] is shared


def test_an_error_names_the_mapped_argument_behind_a_shared_one() -> None:
    with pytest.raises(xlamini.errors.TracerBoolConversionError, match="it depends on the argument 'x'"):
        xlamini.vmap(lambda n, x: n if x else x, (None, 0))(3, RAMP[0])


def test_programs_that_differ_in_shared_numbers_are_one_executable(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    monkeypatch.setattr(program_cache, "CompileRequest", lambda *args: compiled.append(args) or CompileRequest(*args))
    mapped = xlamini.vmap(lambda x, n: lax.tanh(x * n) * n + 1.0, (0, None))
    counts = []
    for n in range(2, 9):
        assert_close(mapped(RAMP[0], n), np.tanh(RAMP[0] * n) * n + 1, 1e-6)
        counts.append(len(compiled))
    assert counts[-1] == counts[3] <= 2
