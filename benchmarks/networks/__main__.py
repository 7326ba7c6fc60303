"""Times the layers of networks with xlamini, JAX, ONNX Runtime and NumPy, and prints a table.

    python -m benchmarks.networks --jax-python PATH --onnx-python PATH [--rounds 3] [--only WORD]… [--record MACHINE]

ONNX Runtime has an environment of its own: `python -m venv DIR && DIR/bin/pip install onnxruntime onnx numpy`. NumPy
runs in it too. A library without an interpreter is left out.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
from collections.abc import Sequence

from benchmarks.harness import Side, answer
from benchmarks.networks.layers import LAYERS
from benchmarks.records import Numbers, Record, write

THREADS = 2
BARS = {"jax": 1.0, "onnxruntime": 1.2}
LIBRARIES = ("xlamini", "jax", "onnxruntime", "numpy")

Best = dict[tuple[str, str], list[float]]


def main() -> None:
    """Read the command line, run the workers alternately, print the table."""
    parser = argparse.ArgumentParser(description="Time layers of networks on the CPU with several libraries.")
    parser.add_argument("--jax-python")
    parser.add_argument("--onnx-python")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", action="append", default=[], help="only layers whose name has this word")
    parser.add_argument("--record", metavar="MACHINE", help="add the rows to benchmarks/results")
    args = parser.parse_args()
    found = (sys.executable, args.jax_python, args.onnx_python, args.onnx_python)
    pythons = {library: python for library, python in zip(LIBRARIES, found, strict=True) if python}
    os.environ |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(THREADS))
    best: Best = {}
    for _ in range(args.rounds):
        for library, python in pythons.items():
            try:
                _run(library, python, args.only, best)
            except RuntimeError as error:
                sys.exit(f"{library} failed: {error}")
    print(_table(best))
    if args.record:
        write(_records(best), args.record, [Side(library, python) for library, python in pythons.items()])


def _run(library: str, python: str, only: Sequence[str], best: Best) -> None:
    """Run one process of one library, and put the least of each number into `best`."""
    words = [argument for word in only for argument in ("--only", word)]
    for name, *numbers in answer(Side(library, python), "benchmarks.networks.worker", library, *words):
        best[name, library] = [min(pair) for pair in zip(numbers, best.get((name, library), numbers), strict=True)]


def _records(best: Best) -> list[Record]:
    found: dict[str, Numbers] = {}
    for (name, library), numbers in best.items():
        found.setdefault(name, {})[library] = dict(zip(("least", "processor", "compile"), numbers, strict=True))
    return [Record("networks", name, numbers, target=BARS["jax"]) for name, numbers in found.items()]


def _table(best: Best) -> str:
    """Markdown: milliseconds by the clock, then by the processor's time in brackets; ratios of the former."""
    head = ["layer", *LIBRARIES, "/ JAX", "/ ONNX Runtime", "compile / JAX"]
    lines = [head, ["---"] * len(head)]
    lines += [_line(layer.name, best) for layer in LAYERS if (layer.name, "xlamini") in best]
    bars = []
    for library, bar in BARS.items():
        ratios = [r for layer in LAYERS if (r := _ratio(best, layer.name, library)) is not None]
        if ratios:
            met, mean = sum(r <= bar for r in ratios), statistics.geometric_mean(ratios)
            bars.append(f"At most {bar} of {library}: {met} of {len(ratios)}, geometric mean {mean:.2f}.")
    return "\n".join([*(f"| {' | '.join(line)} |" for line in lines), "", *bars])


def _line(name: str, best: Best) -> list[str]:
    times = [best.get((name, library)) for library in LIBRARIES]
    cells = [f"{t[0] * 1e3:.3g} [{t[1] * 1e3:.3g}]" if t else "-" for t in times]
    ratios = [_shown(_ratio(best, name, library), bar) for library, bar in BARS.items()]
    return [name, *cells, *ratios, _shown(_ratio(best, name, "jax", 2), None)]


def _ratio(best: Best, name: str, library: str, number: int = 0) -> float | None:
    ours, other = best.get((name, "xlamini")), best.get((name, library))
    return ours[number] / other[number] if ours and other else None


def _shown(ratio: float | None, bar: float | None) -> str:
    if ratio is None:
        return "-"
    return f"{ratio:.2f}" + (" MISSED" if bar is not None and ratio > bar else "")


if __name__ == "__main__":
    main()
