"""Record the primitives and params of JAX's programs into handed_out.json: `python record_handed_out.py`, with JAX."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jax
import jax.extend.core as jax_core
from handed_out import call, calls, described


def main() -> None:
    found: dict[str, Any] = {}
    for name in calls():
        try:
            fun, args = call(jax, name)
            found[name] = described(jax.make_jaxpr(fun)(*args).jaxpr, jax_core)
        except Exception as error:
            print(f"left out: {name}: {type(error).__name__} {str(error)[:100]}")
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in found.items())
    text = f'{{"jax": {json.dumps(jax.__version__)}, "calls": {{\n{lines}\n}}}}\n'
    Path(__file__).with_name("handed_out.json").write_text(text)
    print(len(found), "calls")


if __name__ == "__main__":
    main()
