"""Eight virtual CPU devices: calls of sharded programs, and a data-parallel training step."""

from __future__ import annotations

import os
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks import transformer
from benchmarks.timing import Measurement, Settings, each_per_call, once

DEVICES = 8
VARIABLES = {"XLAMINI_NUM_CPU_DEVICES": str(DEVICES), "XLA_FLAGS": f"--xla_force_host_platform_device_count={DEVICES}"}


def measure(load: Callable[[], ModuleType], settings: Settings) -> list[Measurement]:
    """Measure dispatch of one operation, and each stage of a data-parallel 12-layer step."""
    os.environ.update(VARIABLES)  # read when the library first lists its devices
    jax = load()
    mesh = jax.make_mesh((DEVICES,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    split = jax.NamedSharding(mesh, jax.P("data"))
    whole = jax.NamedSharding(mesh, jax.P())
    x = jax.device_put(np.ones((DEVICES, 16), np.float32), split)
    increment, centred = jax.jit(lambda x: x + 1), jax.jit(lambda x: x - x.mean())
    calls = [
        ("sharded call: 8 devices", lambda: increment(x)),
        # Each call waits for its result: with two such programs in flight JAX deadlocks, and XLA aborts the process.
        ("sharded call: 8 devices, with a collective", lambda: centred(x).block_until_ready()),
    ]
    return [*each_per_call(jax, calls, settings, 1.0), *_step(jax, whole, split, 2 if settings.quick else 12, settings)]


def _step(jax: ModuleType, whole: Any, split: Any, depth: int, settings: Settings) -> list[Measurement]:
    params, batch = transformer.init_params(depth), transformer.make_batch()
    step = jax.jit(transformer.make_step(jax), in_shardings=(whole, split), out_shardings=(whole, whole))
    seconds, lowered = once(lambda: step.trace(params, batch).lower())
    compiling, compiled = once(lowered.compile)
    operands = jax.device_put(params, whole), jax.device_put(batch, split)
    steady = each_per_call(jax, [(f"sharded {depth} layers: steady step", lambda: compiled(*operands))], settings, 1.0)
    return [
        Measurement(f"sharded {depth} layers: trace + lower", seconds, target=0.15),
        Measurement(f"sharded {depth} layers: compile", compiling),
        *steady,
    ]
