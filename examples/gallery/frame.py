"""What every program of the gallery shares: its command line, a progress bar, numbers with their range, the picture.

A program has `run(quick)`, which returns its numbers and a function that draws them on a figure. It also has the ranges
in which its numbers should lie, for the long run and for the quick one.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from matplotlib.figure import Figure
from tqdm import tqdm

Numbers = dict[str, float]
Draw = Callable[[Figure], Any]
Ranges = Mapping[str, tuple[float, float]]


def steps(count: int, unit: str = "step") -> Iterable[int]:
    """The numbers from 0 to count - 1, with a progress bar in a terminal."""
    return tqdm(range(count), unit=unit, disable=not sys.stderr.isatty())


def outside(numbers: Numbers, ranges: Ranges) -> list[str]:
    """What is wrong with the numbers: each one that is missing, or not in its range."""
    if numbers.keys() != ranges.keys():
        return [f"the numbers are {sorted(numbers)}, expected were {sorted(ranges)}"]
    wrong = [name for name, (low, high) in ranges.items() if not low <= numbers[name] <= high]
    return [f"{name} is {numbers[name]:.4g}, expected between {ranges[name]}" for name in wrong]


def main(run: Callable[[bool], tuple[Numbers, Draw]], expected: Ranges, expected_quick: Ranges) -> None:
    """Run a program of the gallery from the command line: print its numbers, draw them, and compare them."""
    path = Path(sys.argv[0])
    parser = argparse.ArgumentParser(description=(run.__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a short run, as the tests make it")
    parser.add_argument("--out", default=f"{path.stem}.png", help="picture to write (%(default)s)")
    args = parser.parse_args()
    start = time.perf_counter()
    numbers, draw = run(args.quick)
    ranges = expected_quick if args.quick else expected
    for name, value in numbers.items():
        print(f"{name:32} {value:10.4g}   expected: {ranges[name][0]:g} to {ranges[name][1]:g}")
    save(draw, args.out)
    print(f"{time.perf_counter() - start:.1f} s; picture in {args.out}")
    sys.exit("\n".join(outside(numbers, ranges)) or None)


def save(draw: Draw, path: str | Path) -> None:
    """Draw on a new figure and write it as a PNG file."""
    figure = plt.figure(figsize=(9, 4), layout="constrained")
    draw(figure)
    figure.savefig(path, dpi=110)
    plt.close(figure)
