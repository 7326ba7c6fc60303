"""Evosax: strategies that minimize a function of a population, in loops and in batches of seeds."""
from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
from evosax import algorithms

_START = jnp.full(3, 2.0)


def _loss(x: Any) -> Any:
    return ((x - jnp.array([1.0, -0.5, 0.0])) ** 2 * jnp.array([1.0, 3.0, 0.5])).sum(-1)


def _best(strategy: Any, key: Any, generations: int) -> Any:
    params = strategy.default_params

    def generation(state: Any, key: Any) -> Any:
        ask, tell = jax.random.split(key)
        population, state = strategy.ask(ask, state, params)
        state, _ = strategy.tell(tell, population, _loss(population), state, params)
        return state, state.best_fitness

    state, best = jax.lax.scan(generation, strategy.init(key, _START, params), jax.random.split(key, generations))
    return best, state.mean


def strategies() -> dict[str, Any]:
    """OpenAI's, a natural, and a simple one, each a scan under jit."""
    chosen = {"openai": algorithms.Open_ES, "natural": algorithms.SNES, "simple": algorithms.SimpleES}
    made = {name: make(population_size=8, solution=_START) for name, make in chosen.items()}
    return {name: jax.jit(lambda key, s=s: _best(s, key, 5))(jax.random.key(0)) for name, s in made.items()}


def many_seeds() -> dict[str, Any]:
    """Runs of one strategy side by side."""
    strategy = algorithms.SNES(population_size=6, solution=_START)
    best, mean = jax.jit(jax.vmap(lambda key: _best(strategy, key, 6)))(jax.random.split(jax.random.key(1), 4))
    return {"best": best, "mean": mean}
