"""The overhead of calling a compiled function that computes almost nothing."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks.timing import Measurement, Settings, each_per_call


def measure(load: Callable[[], ModuleType], settings: Settings) -> list[Measurement]:
    """Measure one argument, a dict of 100 leaves, keyword arguments, a NumPy argument and refs."""
    jax = load()
    x = jax.numpy.ones(8)
    leaves = {f"leaf{i:02}": jax.numpy.ones(8) for i in range(100)}
    host = np.ones(8, np.float32)

    @jax.jit
    def increment(x: Any) -> Any:
        return x + 1

    @jax.jit
    def increment_all(leaves: dict[str, Any]) -> dict[str, Any]:
        return {name: leaf + 1 for name, leaf in leaves.items()}

    @jax.jit
    def fused(x: Any, *, scale: Any, shift: Any) -> Any:
        return x * scale + shift

    ref = jax.new_ref(jax.numpy.zeros(10_000_000))

    @jax.jit
    def write(ref: Any, x: Any) -> None:
        ref[0] = x[0]

    @jax.jit
    def write_closed_over(x: Any) -> None:
        ref[0] = x[0]

    calls = [
        ("jit call: 1 argument", lambda: increment(x)),
        ("jit call: dict of 100 leaves", lambda: increment_all(leaves)),
        ("jit call: keyword arguments", lambda: fused(x, scale=x, shift=x)),
        ("jit call: NumPy argument", lambda: increment(host)),
        ("jit call: one element of a ref of 40 MB", lambda: write(ref, x)),
        ("jit call: one element of a ref that is closed over", lambda: write_closed_over(x)),
    ]
    return each_per_call(jax, calls, settings, target=1.0)
