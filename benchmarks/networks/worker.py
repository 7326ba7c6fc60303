"""Measures the layers with one library in this process, and prints the numbers of all as a line of JSON.

    python -m benchmarks.networks.worker LIBRARY [--only WORD]…

LIBRARY is `xlamini`, `jax`, `onnxruntime` or `numpy`. For each layer: the seconds of the fastest call by the clock; of
a call by the processor's time, the mean, because a thread's time may be counted after the call that it worked for; and
of the first call, which compiles, by the processor's time.
"""

from __future__ import annotations

import argparse
import importlib
import json
import statistics
import time
from collections.abc import Callable
from typing import Any

from benchmarks.networks.layers import LAYERS, Layer
from benchmarks.networks.operands import operands

_SECONDS, _LEAST, _MOST = 0.4, 5, 200
"""Of a layer's calls in this process: their time, and how many at least and at most."""


def call_of(library: str, layer: Layer) -> Callable[[], Any] | None:
    """A call that computes the layer and waits for its result; None if the library has no such function."""
    if library == "onnxruntime":
        return importlib.import_module("benchmarks.networks.onnx_models").program(layer)
    if library == "numpy":
        return importlib.import_module("benchmarks.networks.numpy_programs").program(layer)
    jax = importlib.import_module(library)
    importlib.import_module(f"{library}.numpy")
    program = importlib.import_module("benchmarks.networks.xla_programs").program
    compiled, placed = jax.jit(program(jax, layer)), jax.device_put(operands(layer))
    return lambda: jax.block_until_ready(compiled(*placed))


def timed(call: Callable[[], Any]) -> tuple[float, float]:
    """The seconds of one call, by the clock and by the processor's time."""
    clock, processor = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - clock, time.process_time() - processor


def measure(call: Callable[[], Any]) -> list[float]:
    """The fastest call, the cost of one, and the cost of the first."""
    (_, first), runs = timed(call), [timed(call)]
    while len(runs) < _LEAST or (len(runs) < _MOST and sum(clock for clock, _ in runs) < _SECONDS):
        runs.append(timed(call))
    return [min(clock for clock, _ in runs), statistics.mean(cost for _, cost in runs), first]


def main() -> None:
    """Read the command line, measure, print."""
    parser = argparse.ArgumentParser(description="Measure the layers of networks with one library.")
    parser.add_argument("library")
    parser.add_argument("--only", action="append", help="only layers whose name has this word")
    args = parser.parse_args()
    found = []
    for layer in LAYERS:
        if args.only and not any(word in layer.name for word in args.only):
            continue
        call = call_of(args.library, layer)
        if call is not None:
            found.append([layer.name, *measure(call)])
    print(json.dumps(found))


if __name__ == "__main__":
    main()
