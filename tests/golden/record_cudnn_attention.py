"""Records the custom calls that JAX emits for the programs of cudnn_attention.py.

Run it where JAX is installed, with or without a GPU; the test needs only the file it writes:

    python tests/golden/record_cudnn_attention.py
"""

from __future__ import annotations

import json
from pathlib import Path

import jax
from cudnn_attention import calls, programs
from jax._src.cudnn import fused_attention_stablehlo

# Without a GPU there is no cuDNN to ask.
fused_attention_stablehlo.check_cudnn_version = lambda: 91200
fused_attention_stablehlo.check_compute_capability = lambda capability: True

if __name__ == "__main__":
    records = {}
    for name, (fun, shapes) in programs(jax).items():
        args = [jax.ShapeDtypeStruct(shape, dtype) for shape, dtype in shapes]
        records[name] = calls(jax.jit(fun).trace(*args).lower(lowering_platforms=("cuda",)).as_text())
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(record)}" for name, record in records.items())
    Path(__file__).with_name("cudnn_attention.json").write_text("{\n" + lines + "\n}\n")
