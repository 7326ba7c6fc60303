"""The command line: `python -m benchmarks`."""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import platform
import sys
from pathlib import Path

from tqdm import tqdm

from benchmarks.cases import NAMES, SLOW_NAMES
from benchmarks.environments import JAX_PYTHON_VARIABLE, compile_bytecode, find_jax_python
from benchmarks.harness import ROOT, Results, Side, run_alternately
from benchmarks.plot import save_plot
from benchmarks.table import table


def parse_args(argv: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Compare the speed of xlamini with that of JAX."
    )
    add = parser.add_argument
    add("--rounds", type=int, default=5, help="processes per case and library (%(default)s)")
    add("--quick", action="store_true", help="one round of short measurements")
    add("--full", action="store_true", help=f"also {', '.join(SLOW_NAMES)}")
    add("--only", action="append", choices=NAMES + SLOW_NAMES, metavar="NAME", help="repeatable")
    add("--platform", default="cpu", help="platform of both libraries: cpu, cuda, tpu (%(default)s)")
    add("--jax-python", metavar="PATH", help=f"Python interpreter with JAX (or {JAX_PYTHON_VARIABLE})")
    add("--plot", metavar="PATH", help="write a picture of the ratios")
    add("--json", metavar="PATH", help="write every measured value")
    args = parser.parse_args(argv)
    if args.rounds < 1:
        parser.error("--rounds must be at least 1")
    return args


def measure(args: argparse.Namespace, jax_python: str) -> Results:
    """Run every selected case with both libraries, with a progress bar."""
    sides = (Side("xlamini", sys.executable, args.platform), Side("jax", jax_python, args.platform))
    cases = args.only or NAMES + SLOW_NAMES * args.full
    rounds = 1 if args.quick else args.rounds
    results = Results()
    with tqdm(total=rounds * len(cases) * len(sides), unit="process") as progress:
        for case, side, measurements in run_alternately(sides, cases, rounds, quick=args.quick):
            results.add(case, side.library, measurements)
            progress.set_postfix_str(f"{case} {side.library}")
            progress.update()
    return results


def main(argv: list[str] | None = None) -> int:
    """Measure, print the table and write the requested files; return 1 if a case failed to run."""
    args = parse_args(argv)
    try:
        jax_python = find_jax_python(args.jax_python, ROOT)
        compile_bytecode(ROOT)
    except RuntimeError as error:
        sys.exit(f"benchmarks: {error}")
    rows = measure(args, jax_python).rows()
    print(table(rows))
    if args.json:
        machine = {"machine": platform.platform(), "cores": os.cpu_count()}
        content = {**machine, "rows": [dataclasses.asdict(row) for row in rows]}
        Path(args.json).write_text(json.dumps(content, indent=1) + "\n")
    if args.plot:
        save_plot(args.plot, rows)
    return 1 if any(row.errors for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
