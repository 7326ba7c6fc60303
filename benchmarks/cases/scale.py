"""Growth: the cost of one equation, one leaf and one device, as programs, arguments and machines grow.

A cost that grows with the size shows work that grows faster than linearly. Costs are the processor's time of this
process, because the sizes take from a millisecond to minutes. `python -m benchmarks --only scale`; the case of devices
has a process for each number of them.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.timing import Measurement, Settings

EQUATIONS, QUICK_EQUATIONS = (1_000, 10_000, 100_000, 1_000_000), (1_000, 4_000)
LEAVES, QUICK_LEAVES = (10, 100, 1_000, 10_000, 100_000), (10, 1_000)
DEVICES, QUICK_DEVICES = (1, 4, 16, 64, 256), (1, 8)
PER_ITERATION = 4
LONGEST_SECONDS = 120.0
"""A size is left out if the one before it says that it would take longer."""
BODY = 100
"""Equations of the program that is lowered for several devices."""
REPEATS = 7


def measure(load: Callable[[], ModuleType], settings: Settings) -> list[Measurement]:
    """Measure tracing and lowering per equation, a call per leaf, and placing and lowering per device."""
    jax = load()
    _lower_chain(jax, 8)  # the first lowering imports
    quick = settings.quick
    kinds = {"equation": _lower_chain, "equation of calls": _lower_calls, "equation of a gradient": _lower_gradient}
    rows = []
    for what, lower in kinds.items():
        sizes = QUICK_EQUATIONS if quick else EQUATIONS
        rows += _growing(f"trace + lower, {{:,}} equations: an {what}", sizes, lambda n, lower=lower: lower(jax, n))
    leaves = QUICK_LEAVES if quick else LEAVES
    rows += _growing("trace + lower, {:,} leaves: a leaf", leaves, lambda n: _lower_leaves(jax, n))
    rows += _growing("call, {:,} leaves: a leaf", leaves, lambda n: _call(jax, n))
    for devices in QUICK_DEVICES if quick else DEVICES:
        rows += _in_a_process(jax.__name__, devices)
    return rows


def _growing(what: str, sizes: tuple[int, ...], seconds_of: Callable[[int], float]) -> list[Measurement]:
    rows: list[Measurement] = []
    seconds, before = 0.0, sizes[0]
    for size in sizes:
        if seconds * size / before > LONGEST_SECONDS:
            rows.append(Measurement(what.format(size), None, error=f"left out, as {before:,} take {seconds:.0f} s"))
            continue
        gc.collect()
        seconds, before = seconds_of(size), size
        rows.append(Measurement(what.format(size), seconds / size))
    return rows


def _lower_chain(jax: ModuleType, length: int) -> float:
    return _processor_time(lambda: jax.jit(_chain(jax, length)).lower(_numbers(16)))


def _lower_calls(jax: ModuleType, length: int) -> float:
    """Calls of one function, on arrays large enough for the formulas that xlamini has for the CPU."""
    jnp = jax.numpy
    block = jax.jit(lambda y: jnp.tanh(jnp.sin(y) * y + 0.5))

    def chain(x: Any) -> Any:
        for _ in range(length // PER_ITERATION):
            x = block(x)
        return x

    return _processor_time(lambda: jax.jit(chain).lower(_numbers(128)))


def _lower_gradient(jax: ModuleType, length: int) -> float:
    """The gradient of a function of `length` equations."""
    chain = _chain(jax, length)
    return _processor_time(lambda: jax.jit(jax.grad(lambda x: jax.numpy.sum(chain(x)))).lower(_numbers(16)))


def _chain(jax: ModuleType, length: int) -> Callable[[Any], Any]:
    """A function of `length` equations in a row."""
    jnp = jax.numpy

    def chain(x: Any) -> Any:
        y = x
        for _ in range(length // PER_ITERATION):
            y = jnp.tanh(jnp.sin(y) * x + 0.5)
        return y

    return chain


def _numbers(count: int) -> np.ndarray:
    return np.linspace(0, 1, count, dtype=np.float32)


def _lower_leaves(jax: ModuleType, count: int) -> float:
    """A function of many leaves that returns them all."""
    leaves = _leaves(jax, count)
    return _processor_time(lambda: jax.jit(_identity).lower(leaves))


def _call(jax: ModuleType, count: int) -> float:
    """A call that takes many leaves, of which one is used."""
    leaves = _leaves(jax, count)
    call = jax.jit(lambda leaves: leaves[_name(0)] + 1, keep_unused=True)
    jax.block_until_ready(call(leaves))
    repeats = max(REPEATS, 1_000 // count)
    return min(_processor_time(lambda: jax.block_until_ready(call(leaves))) for _ in range(repeats))


def _identity(leaves: Any) -> Any:
    return leaves


def _leaves(jax: ModuleType, count: int) -> dict[str, Any]:
    return dict.fromkeys(map(_name, range(count)), jax.numpy.ones(8))


def _name(number: int) -> str:
    return f"leaf{number:06}"


def _in_a_process(library: str, devices: int) -> list[Measurement]:
    """The rows of `devices` in a process that has so many of them."""
    flags = f"--xla_force_host_platform_device_count={devices}"
    environment = {**os.environ, "XLAMINI_NUM_CPU_DEVICES": str(devices), "XLA_FLAGS": flags}
    code = f"from benchmarks.cases.scale import devices; devices({library!r}, {devices})"
    done = subprocess.run([sys.executable, "-c", code], check=True, env=environment, capture_output=True, text=True)
    return [Measurement(what, value) for what, value in json.loads(done.stdout).items()]


def devices(library: str, count: int) -> None:
    """Print the costs of placing, lowering and calling on so many devices, as JSON."""
    import importlib

    jax, _ = importlib.import_module(library), importlib.import_module(f"{library}.numpy")
    mesh = jax.make_mesh((count,), ("data",), axis_types=(jax.sharding.AxisType.Auto,))
    split = jax.NamedSharding(mesh, jax.P("data"))
    host = np.ones((count, 16), np.float32)
    placed = jax.block_until_ready(jax.device_put(host, split))
    _lower_on(jax, placed)
    call = jax.jit(lambda x: x + 1)
    jax.block_until_ready(call(placed))
    costs = {
        "device_put": lambda: _processor_time(lambda: jax.block_until_ready(jax.device_put(host, split))),
        "call": lambda: _processor_time(lambda: jax.block_until_ready(call(placed))),
        "trace + lower": lambda: _lower_on(jax, placed) / BODY * count,
    }
    units = {"trace + lower": "an equation"}
    rows = {
        f"{what}, {count} devices: {units.get(what, 'a device')}": min(cost() for _ in range(REPEATS)) / count
        for what, cost in costs.items()
    }
    print(json.dumps(rows))


def _lower_on(jax: ModuleType, x: Any) -> float:
    return _processor_time(lambda: jax.jit(_chain(jax, BODY)).lower(x))


def _processor_time(run: Callable[[], Any]) -> float:
    start = time.process_time()
    run()
    return time.process_time() - start
