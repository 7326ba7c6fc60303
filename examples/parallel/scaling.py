"""Analyze a training step of a 7B-parameter transformer on 4 to 256 TPU chips that are not attached.

    pip install libtpu
    python examples/parallel/scaling.py --slices 2x2 4x4 8x8 16x16

The step is compiled ahead of time from shapes, so its 14 GB of parameters are never allocated.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
from transformer import SEVEN_BILLION, Config, param_shapes, sharded_step

import xlamini
import xlamini.numpy as jnp
from xlamini.sharding import Mesh


def compiled_for(target: Any, config: Config, sequences: int) -> Any:
    """The fully sharded step compiled for all devices of a target, with `sequences` per device."""
    mesh = Mesh(np.array(target.devices), ("data",))
    params = {name: xlamini.ShapeDtypeStruct(shape, jnp.bfloat16) for name, shape in param_shapes(config).items()}
    tokens = xlamini.ShapeDtypeStruct((sequences * mesh.size, config.length + 1), jnp.int32)
    return sharded_step("fully sharded", mesh, config).lower(params, tokens).compile()


def main() -> None:
    """Print one row per slice, and the collectives of the last one."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--chip", default="v5e")
    parser.add_argument("--slices", nargs="+", default=["2x2", "4x4", "8x8", "16x16"])
    parser.add_argument("--sequences", type=int, default=1, help="sequences of 2,048 tokens for each chip")
    parser.add_argument("--layers", type=int, default=SEVEN_BILLION.layers)
    args = parser.parse_args()
    config = SEVEN_BILLION._replace(layers=args.layers)
    print("| chips | compiled in | arguments a chip | temporaries a chip | sent a chip and step | predicted step |")
    print("|---|---|---|---|---|---|")
    compiled = None
    for name in args.slices:
        target = xlamini.target(f"tpu:{args.chip}:{name}")
        start = time.perf_counter()
        try:
            compiled = compiled_for(target, config, args.sequences)
        except xlamini.errors.JaxRuntimeError as error:
            print(f"| {len(target.devices)} | {str(error).splitlines()[0][:100]} |")
            continue
        seconds, memory = time.perf_counter() - start, compiled.memory_analysis()
        sizes = [memory.argument_size_in_bytes, memory.temp_size_in_bytes, compiled.collectives().bytes]
        shown = " | ".join(f"{size / 1e9:.2f} GB" for size in sizes)
        predicted = compiled.prediction().seconds
        print(f"| {len(target.devices)} | {seconds:.0f} s | {shown} | {predicted:.2f} s |", flush=True)
    if compiled is not None:
        print(compiled.collectives())


if __name__ == "__main__":
    main()
