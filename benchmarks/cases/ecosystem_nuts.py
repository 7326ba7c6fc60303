"""NUTS of numpyro on a hierarchical model: one transition, and a whole chain, the first and once more."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.distributions as dist
from numpyro.infer import MCMC, NUTS

from benchmarks.ecosystem import measurements, spent, step_stages
from benchmarks.timing import Measurement, Settings

ROWS, COLUMNS, GROUPS = 200, 4, 10


def regression(x: Any, group: Any, y: Any) -> None:
    """A logistic regression whose intercepts belong to groups."""
    scale = numpyro.sample("scale", dist.HalfNormal(1.0))
    weights = numpyro.sample("weights", dist.Normal(jnp.zeros(COLUMNS), 1.0).to_event(1))
    with numpyro.plate("group", GROUPS):
        offset = numpyro.sample("offset", dist.Normal(0.0, scale))
    with numpyro.plate("row", ROWS):
        numpyro.sample("y", dist.Bernoulli(logits=x @ weights + offset[group]), obs=y)


def data() -> tuple[Any, Any, Any]:
    """Rows of numbers, their groups, and outcomes."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((ROWS, COLUMNS)).astype(np.float32)
    group = rng.integers(0, GROUPS, ROWS).astype(np.int32)
    y = (rng.random(ROWS) < 1 / (1 + np.exp(-x.sum(1)))).astype(np.int32)
    return jnp.asarray(x), jnp.asarray(group), jnp.asarray(y)


def measure(load: Callable[[], ModuleType], settings: Settings) -> list[Measurement]:
    """Measure the start of the sampler, each stage of a transition, and the chains."""
    load()
    operands = data()
    kernel = NUTS(regression, step_size=0.1, adapt_step_size=False, adapt_mass_matrix=False)
    init, state = spent(lambda: jax.block_until_ready(kernel.init(jax.random.key(0), 0, None, operands, {})))
    transition = jax.jit(lambda state: kernel.sample(state, operands, {}))
    stages = step_stages(
        "NUTS",
        lambda: transition.lower(state),
        lambda compiled: compiled(state),
        lambda: transition(state),
        jax.block_until_ready,
        settings,
    )
    return [*measurements("NUTS", {"init": init}), *stages, *_chains(operands, settings)]


def _chains(operands: tuple[Any, Any, Any], settings: Settings) -> list[Measurement]:
    count = 10 if settings.quick else 100
    mcmc = MCMC(NUTS(regression), num_warmup=count, num_samples=count, progress_bar=False)

    def run() -> None:
        mcmc.run(jax.random.key(1), *operands)
        jax.block_until_ready(mcmc.get_samples())

    return measurements("NUTS", {"a chain": spent(run)[0], "the chain again": spent(run)[0]})
