"""Runs one case with one library in this process and prints its measurements as JSON.

    python -m benchmarks.worker LIBRARY CASE [--quick]

LIBRARY is `xlamini`, `jax`, or `xlamini.as_jax`, which makes `import jax` give xlamini. A case names
neither: it takes a function that imports the library, so that both sides run the same code. The
programs of the ecosystem import `jax`.
"""

from __future__ import annotations

import argparse
import dataclasses
import importlib
import json
from types import ModuleType

from benchmarks.timing import Measurement, Settings

AS_JAX = "xlamini.as_jax"


def measure(library: str, case: str, settings: Settings) -> list[Measurement]:
    """Run `case` with `library` and return its measurements."""
    if library == AS_JAX:
        importlib.import_module(AS_JAX)
        library = "jax"

    def load() -> ModuleType:
        module = importlib.import_module(library)
        importlib.import_module(f"{library}.numpy")
        return module

    return importlib.import_module(f"benchmarks.cases.{case}").measure(load, settings)


def main() -> None:
    """Read the command line, measure, print one line of JSON."""
    parser = argparse.ArgumentParser(description="Run one benchmark case with one library.")
    parser.add_argument("library")
    parser.add_argument("case")
    parser.add_argument("--quick", action="store_true")
    args = parser.parse_args()
    results = measure(args.library, args.case, Settings(quick=args.quick))
    print(json.dumps([dataclasses.asdict(result) for result in results]))


if __name__ == "__main__":
    main()
