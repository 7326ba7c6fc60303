"""Record how JAX prints programs into jaxprs.json: `python record_jaxprs.py` where JAX is installed."""
from __future__ import annotations

import json
from pathlib import Path

import jax
from jaxpr_programs import programs


def main() -> None:
    texts = {name: str(jax.make_jaxpr(fun)(*args)) for name, (fun, args) in programs(jax).items()}
    golden = {"jax": jax.__version__, "texts": {name: text.splitlines() for name, text in texts.items()}}
    Path(__file__).with_name("jaxprs.json").write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
