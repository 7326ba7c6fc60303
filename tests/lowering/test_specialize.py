"""The platform's forms are calls in the place of equations: they compute the same, wherever the equation lies."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini as jax
import xlamini.numpy as jnp
from xlamini import extend, lax
from xlamini.core.program.form import PLATFORMS, Platform
from xlamini.core.program.form_call import form_p, original
from xlamini.core.program.jaxpr_check import check_jaxpr
from xlamini.lowering.specialize import specialize

SIGNAL, FILTER = np.linspace(-1, 1, 24, dtype=np.float32).reshape(2, 3, 4), np.ones((5, 3, 2), np.float32)


def loop(x: Any) -> Any:
    return lax.scan(lambda c, v: (lax.cond(v > 0, jnp.logaddexp, jnp.arctan2, c, v), c), x.sum(), x)


def filtered(x: Any) -> Any:
    return jnp.tanh(lax.conv(jnp.asarray(SIGNAL) * x.sum(), jnp.asarray(FILTER), (1,), "SAME"))


PROGRAMS = {
    "formulas": lambda x: jnp.sinh(x.astype("float64")) + jnp.arcsin(x / 10),
    "a loop and a branch": loop,
    "complex": lambda x: jnp.sqrt(lax.complex(x, -x)) * jnp.tan(lax.complex(x, x)),
    "a convolution": filtered,
    "its gradient": jax.grad(lambda x: filtered(x).sum()),
    "vmap": jax.vmap(lambda x: jnp.logaddexp(x, 2.0)),
    "a function that is called": jax.jit(lambda x: jnp.arctan(x) * jax.jit(jnp.arctan)(2 * x)),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_forms_compute_what_the_equations_do(name: str) -> None:
    """Run as it is printed, the program for the CPU gives bit for bit what `jit` gives."""
    with jax.enable_x64(True):
        x = jnp.linspace(-2, 2, 700, dtype="float32")
        program = jax.make_jaxpr(PROGRAMS[name], platform="cpu")(x)
        found = jax.jit(extend.jaxpr_as_fun(program))(x)
        expected = jax.tree.leaves(jax.jit(PROGRAMS[name])(x))
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("platform", PLATFORMS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_types_and_ids_stay(name: str, platform: str) -> None:
    with jax.enable_x64(True):
        jaxpr = jax.make_jaxpr(PROGRAMS[name])(jnp.linspace(-2, 2, 700, dtype="float32")).jaxpr
    for several in (False, True):
        found = specialize(jaxpr, (Platform(platform, several),))
        check_jaxpr(found)
        assert [eqn.id for eqn in found.eqns] == [eqn.id for eqn in jaxpr.eqns]
        for eqn, before in zip(found.eqns, jaxpr.eqns, strict=True):
            assert original(eqn).primitive is before.primitive
            assert eqn.provenance is before.provenance


def test_a_specialized_program_stays_as_it_is() -> None:
    jaxpr = jax.make_jaxpr(loop, platform="cpu")(jnp.ones(700)).jaxpr
    assert specialize(jaxpr, (Platform("cpu"),)) is jaxpr


def test_equations_of_a_kind_share_their_form() -> None:
    def program(x: Any) -> Any:
        return jnp.logaddexp(jnp.logaddexp(x, 1.0), 1.0)

    first, second = jax.make_jaxpr(program, platform="cpu")(jnp.ones(8)).jaxpr.eqns
    assert first.primitive is second.primitive is form_p
    assert first.params["jaxprs"][0] is second.params["jaxprs"][0]


def test_a_form_may_take_the_operation_itself() -> None:
    """Of large float64 numbers the sine is XLA's: in its own form it is not replaced again."""
    with jax.enable_x64(True):
        (eqn,) = jax.make_jaxpr(jnp.sin, platform="cpu")(jnp.ones(700)).jaxpr.eqns
    text = str(eqn)
    assert text.count("of=sin") == 1 and " = sin " in text


def test_several_platforms_in_one_module() -> None:
    exported = jax.export.export(jax.jit(filtered), platforms=("cpu", "tpu"))(jnp.ones(3))
    text = exported.mlir_module()
    assert "stablehlo.case" in text and "stablehlo.convolution" in text
    np.testing.assert_array_equal(exported.call(jnp.ones(3)), jax.jit(filtered)(jnp.ones(3)))


def test_an_unknown_platform_is_an_error() -> None:
    with pytest.raises(ValueError, match="make_jaxpr: there is no platform 'gpu'; there are cpu, cuda, rocm, tpu"):
        jax.make_jaxpr(jnp.sin, platform="gpu")
