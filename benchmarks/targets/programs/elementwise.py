"""Elementwise functions, and a shift."""

from __future__ import annotations

from types import ModuleType
from typing import Any

from benchmarks.targets.program import Program, each, f32


def programs(jax: ModuleType) -> list[Program]:
    """The programs of this family."""
    jnp, special = jax.numpy, jax.scipy.special

    def several(x: Any) -> Any:
        return jnp.arctan2(x, x + 1) + jnp.cbrt(x) + jnp.arcsin(x) + jnp.sinh(x) + jnp.expm1(x)

    functions = {
        "sin": jnp.sin,
        "tan": jnp.tan,
        "power": lambda x: x**2.5,
        "erfinv": special.erfinv,
        "gammaln": special.gammaln,
        "digamma": special.digamma,
        "trig": several,
        "gelu_grad": jax.grad(lambda x: jax.nn.gelu(x).sum()),
        "roll": lambda x: jnp.roll(x, 3, 1),
    }
    return each(functions, f32(1024, 1024))
