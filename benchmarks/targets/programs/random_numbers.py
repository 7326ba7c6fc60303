"""Random numbers of two generators, the key as its words."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from benchmarks.targets.program import Program, Spec

GENERATORS = {"thre": ("threefry2x32", 2), "rbg": ("rbg", 4)}
SQUARE = (1024, 1024)


def programs(jax: ModuleType) -> list[Program]:
    """The programs of this family."""
    both = [_drawing(jax, name, fun, short) for short in GENERATORS for name, fun in _of_both(jax).items()]
    return both + [_drawing(jax, name, fun, "thre") for name, fun in _of_one(jax).items()]


def _drawing(jax: ModuleType, name: str, fun: Callable[[Any], Any], short: str) -> Program:
    generator, words = GENERATORS[short]

    def drawn(key: Any) -> Any:
        return fun(jax.random.wrap_key_data(key, impl=generator))

    return Program(f"random_{name}_{short}", drawn, (Spec((words,), "uint32"),))


def _of_both(jax: ModuleType) -> dict[str, Callable[[Any], Any]]:
    random, jnp = jax.random, jax.numpy

    def many_keys(key: Any) -> Any:
        return jax.vmap(lambda key: random.normal(key, (64,)))(random.split(key, 256))

    return {
        "normal": lambda key: random.normal(key, SQUARE),
        "uniform_bf16": lambda key: random.uniform(key, SQUARE, jnp.bfloat16),
        "dropout": lambda key: random.bernoulli(key, 0.9, SQUARE),
        "split_vmap": many_keys,
        "categorical": lambda key: random.categorical(key, jnp.zeros((256, 1000))),
        "permutation": lambda key: random.permutation(key, 65536),
    }


def _of_one(jax: ModuleType) -> dict[str, Callable[[Any], Any]]:
    random = jax.random
    return {
        "gamma": lambda key: random.gamma(key, 2.0, (65536,)),
        "randint": lambda key: random.randint(key, SQUARE, 0, 100),
        "truncated_normal": lambda key: random.truncated_normal(key, -2, 2, SQUARE),
    }
