"""The transformer's training step of 12 layers that looks for NaN, beside the plain one, and what is counted of it.

The bars are three times the plain step, and twice its time to the first result; 0.2 s for a memory plan or the cost of
the traced step, which JAX does not have.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import ModuleType
from typing import Any

from benchmarks import transformer
from benchmarks.timing import Measurement, Settings, once, per_call

DEPTH = 12


def measure(load: Callable[[], ModuleType], settings: Settings) -> list[Measurement]:
    """Measure the first call and the steady state of both steps, then the counts of the plain one."""
    jax = load()
    params, batch = transformer.init_params(DEPTH), transformer.make_batch()
    rows = []
    for name, step in {"plain": jax.jit(transformer.make_step(jax)), "nan checks": _checked(jax)}.items():
        first, _ = once(lambda step=step: jax.block_until_ready(step(params, batch)))
        steady = per_call(jax, lambda step=step: step(params, batch), settings)
        rows += [Measurement(f"{name}: first step", first), Measurement(f"{name}: steady step", steady)]
    return rows + _counts(jax, params, batch)


def _counts(jax: ModuleType, params: transformer.Params, batch: Any) -> list[Measurement]:
    """The first memory plan, and the first cost, of a new trace."""
    rows = []
    for name in ("memory_plan", "cost"):
        traced = jax.jit(transformer.make_step(jax)).trace(params, batch)
        if hasattr(traced, name):
            rows.append(Measurement(f"{name.replace('_', ' ')} of the traced step", once(getattr(traced, name))[0]))
    return rows


def _checked(jax: ModuleType) -> Callable[..., Any]:
    """The checked step: by `checked` where the library has it, else by checkify."""
    checkify = import_module(f"{jax.__name__}.experimental.checkify")
    step = transformer.make_step(jax)
    if hasattr(jax, "checked"):
        return jax.checked(step, checkify.nan_checks)
    return jax.jit(checkify.checkify(step, errors=checkify.nan_checks))
