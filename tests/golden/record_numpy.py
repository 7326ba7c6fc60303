"""Record what JAX gives for numpy_expressions.txt into numpy.json: `python record_numpy.py` where JAX is installed."""
from __future__ import annotations

import json
import warnings
from pathlib import Path

import jax
from numpy_expressions import described, expressions, names


def main() -> None:
    warnings.simplefilter("ignore")
    known = names(jax)
    results = {text: described(eval(text, known)) for _, text in expressions()}
    lines = (f"{json.dumps(text)}: {json.dumps(result)}" for text, result in results.items())
    golden = "{\n" + ",\n".join(lines) + "\n}\n"
    Path(__file__).with_name("numpy.json").write_text(golden)


if __name__ == "__main__":
    main()
