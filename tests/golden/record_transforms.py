"""Record what JAX gives for programs/ into transforms.json: `python record_transforms.py` where JAX is installed."""
from __future__ import annotations

import json
import warnings
from pathlib import Path

import jax
import jax.ad_checkpoint
import jax.custom_batching
import jax.experimental
from programs import programs, ran


def main() -> None:
    warnings.simplefilter("ignore")
    results = {name: ran(jax, program) for name, program in programs().items()}
    lines = (f"{json.dumps(name)}: {json.dumps(result)}" for name, result in results.items())
    golden = "{\n" + ",\n".join(lines) + "\n}\n"
    Path(__file__).with_name("transforms.json").write_text(golden)


if __name__ == "__main__":
    main()
