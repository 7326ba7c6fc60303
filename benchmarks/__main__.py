"""The command line: `python -m benchmarks`."""

from __future__ import annotations

import argparse
import sys

from tqdm import tqdm

from benchmarks.cases import ECOSYSTEM_NAMES, NAMES, SLOW_NAMES
from benchmarks.environments import JAX_PYTHON_VARIABLE, compile_bytecode, find_ecosystem, find_jax_python
from benchmarks.harness import ROOT, Results, Side, run_alternately
from benchmarks.plot import save_plot
from benchmarks.records import records, write
from benchmarks.table import table
from benchmarks.targets.compare import compare, names_of
from benchmarks.targets.counts import Comparison
from benchmarks.targets.lower import load
from benchmarks.targets.programs import programs
from benchmarks.targets.report import records_of, report
from benchmarks.worker import AS_JAX


def parse_args(argv: list[str] | None = None) -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description="Compare the speed of xlamini with that of JAX."
    )
    add = parser.add_argument
    add("--rounds", type=int, default=5, help="processes per case and library (%(default)s)")
    add("--quick", action="store_true", help="one round of short measurements")
    add("--full", action="store_true", help=f"also {', '.join(SLOW_NAMES)}")
    add("--ecosystem", action="store_true", help=f"only {', '.join(ECOSYSTEM_NAMES)}")
    add("--only", action="append", metavar="NAME", help="a case, or with --targets a program; repeatable")
    add("--targets", metavar="TARGET,…", help="compile programs for devices that need not be here, such as gpu:h200")
    add("--platform", default="cpu", help="platform of both libraries: cpu, cuda, tpu (%(default)s)")
    add("--jax-python", metavar="PATH", help=f"Python interpreter with JAX (or {JAX_PYTHON_VARIABLE})")
    add("--plot", metavar="PATH", help="write a picture of the ratios")
    add("--record", metavar="MACHINE", help="add the rows to benchmarks/results; a few words on the machine")
    args = parser.parse_args(argv)
    if args.rounds < 1:
        parser.error("--rounds must be at least 1")
    if args.quick and args.record:
        parser.error("--record is for full runs; leave out --quick")
    unknown = set(args.only or ()) - {*NAMES, *SLOW_NAMES, *ECOSYSTEM_NAMES}
    if unknown and not args.targets:
        parser.error(f"--only: there is no case {min(unknown)!r}")
    return args


def runs(args: argparse.Namespace) -> list[tuple[tuple[Side, Side], list[str]]]:
    """The selected cases with the two sides that run them; the ecosystem's have environments of their own."""
    chosen = args.only or (ECOSYSTEM_NAMES if args.ecosystem else NAMES + SLOW_NAMES * args.full)
    plain = [case for case in chosen if case not in ECOSYSTEM_NAMES]
    ecosystem = [case for case in chosen if case in ECOSYSTEM_NAMES]
    found = []
    if plain:
        found.append((_sides(sys.executable, find_jax_python(args.jax_python, ROOT), args.platform), plain))
    if ecosystem:
        found.append((_sides(*find_ecosystem(ROOT), args.platform, AS_JAX), ecosystem))
    return found


def _sides(ours: str, theirs: str, platform: str, module: str = "") -> tuple[Side, Side]:
    return Side("xlamini", ours, platform, module), Side("jax", theirs, platform)


def measure(args: argparse.Namespace) -> Results:
    """Run every selected case with both libraries, with a progress bar."""
    selected = runs(args)
    rounds = 1 if args.quick else args.rounds
    results = Results()
    with tqdm(total=rounds * sum(len(sides) * len(cases) for sides, cases in selected), unit="process") as progress:
        for sides, cases in selected:
            for case, side, measurements in run_alternately(sides, cases, rounds, quick=args.quick):
                results.add(case, side.library, measurements)
                progress.set_postfix_str(f"{case} {side.library}")
                progress.update()
    return results


def compare_targets(args: argparse.Namespace) -> list[Comparison]:
    """Compile the selected programs of both libraries for every target, with a progress bar."""
    sides = _sides(sys.executable, find_jax_python(args.jax_python, ROOT), args.platform)
    targets = args.targets.split(",")
    names = names_of(args.only, list(programs(load("xlamini"))))
    found = compare(sides, names, targets)
    return list(tqdm(found, total=len(names) * len(targets), unit="program"))


def main_of_targets(args: argparse.Namespace) -> int:
    """Compare for targets, print the table and record it if asked to; return 1 if xlamini's side failed."""
    comparisons = compare_targets(args)
    print(report(comparisons))
    if args.record:
        sides = _sides(sys.executable, find_jax_python(args.jax_python, ROOT), args.platform)
        write(records_of(comparisons), args.record, sides)
    return 1 if any("xlamini" in each.errors for each in comparisons) else 0


def main(argv: list[str] | None = None) -> int:
    """Measure, print the table, record it and draw it if asked to; return 1 if a case failed to run."""
    args = parse_args(argv)
    try:
        if args.targets:
            return main_of_targets(args)
        compile_bytecode(ROOT)
        rows = measure(args).rows()
    except RuntimeError as error:
        sys.exit(f"benchmarks: {error}")
    print(table(rows))
    if args.record:
        write(records(rows, args.platform), args.record, runs(args)[0][0])
    if args.plot:
        save_plot(args.plot, records(rows, args.platform))
    return 1 if any(row.errors for row in rows) else 0


if __name__ == "__main__":
    sys.exit(main())
