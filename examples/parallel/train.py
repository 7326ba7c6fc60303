"""Train a small transformer on eight devices with four kinds of parallelism, and compare with one device.

    XLAMINI_NUM_CPU_DEVICES=8 python examples/parallel/train.py
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np
from pipeline import pipelined_step
from transformer import Config, init_params, make_step, sharded_step

import xlamini
from xlamini.sharding import AxisType

AXES = {"data": "data", "tensor": "model", "fully sharded": "data", "pipeline": "stage"}


def tokens_of(config: Config, batch: int) -> np.ndarray:
    """Sequences that count upwards from random numbers, which the model can learn."""
    starts = np.random.default_rng(1).integers(0, config.vocabulary, (batch, 1))
    return ((starts + np.arange(config.length + 1)) % config.vocabulary).astype(np.int32)


def losses(step: Any, config: Config, steps: int) -> list[float]:
    """The loss before each training step."""
    params, values = init_params(config), []
    for _ in range(steps):
        params, value = step(params, tokens_of(config, 16))
        values.append(float(value))
    return values


def main() -> None:
    """Print the first and the last loss of each kind of parallelism, and compare all of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--steps", type=int, default=20)
    steps, config = parser.parse_args().steps, Config(layers=8)
    expected = losses(xlamini.jit(make_step(config)), config, steps)
    print(f"{'one device':14} {expected[0]:.4f} -> {expected[-1]:.4f}")
    for how, axis in AXES.items():
        mesh = xlamini.make_mesh((xlamini.device_count(),), (axis,), axis_types=AxisType.Auto)
        step = pipelined_step(mesh, config) if how == "pipeline" else sharded_step(how, mesh, config)
        actual = losses(step, config, steps)
        print(f"{how:14} {actual[0]:.4f} -> {actual[-1]:.4f} on {mesh.size} devices")
        np.testing.assert_allclose(actual, expected, rtol=1e-4)


if __name__ == "__main__":
    main()
