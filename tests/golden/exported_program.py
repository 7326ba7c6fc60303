"""A program for JAX and xlamini alike, which tests/golden/exported has as files that later versions must read."""
from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
ARGUMENTS = (X, X, {"s": X[0, :1]})
PLATFORMS = ("cpu", "cuda", "tpu")


def program(jax: ModuleType) -> Callable[..., Any]:
    """What was exported: its second argument is not read; its Cholesky factor is another kernel on each platform."""
    jnp, lax = jax.numpy, jax.lax

    def exported(x: Any, unused: Any, options: dict[str, Any]) -> Any:
        sums = lax.scan(lambda total, row: (total + row, total * row), x[0], x)
        factor = jnp.linalg.cholesky(x @ x.T + 3 * jnp.eye(2))
        return {"sorted": jnp.sort(lax.erf(x) + jnp.sin(x)), "factor": factor, "sums": sums, "top": options["s"] * x}

    return exported


def sharded_program(jax: ModuleType) -> Callable[..., Any]:
    """What was exported for 8 devices, without a look at them."""
    jnp = jax.numpy
    return lambda x, w: jnp.sum(jnp.tanh(x @ w) ** 2)


def shardings(jax: ModuleType) -> list[Any]:
    """The shardings of its arguments."""
    mesh = jax.sharding.AbstractMesh((2, 4), ("x", "y"), (jax.sharding.AxisType.Auto,) * 2)
    specs = jax.sharding.PartitionSpec("x"), jax.sharding.PartitionSpec(None, "y")
    return [jax.sharding.NamedSharding(mesh, spec) for spec in specs]
