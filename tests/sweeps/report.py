"""The table of all sweeps: largest errors of values and derivatives, in ulp.

    python -m tests.sweeps.report               prints it
    python -m tests.sweeps.report --record      and writes budgets for the sweeps that have none
"""
from __future__ import annotations

import json
import math
import sys
from typing import Any

from tests.sweeps.measure import BUDGETS, SWEEPS, Worst, budgets, slopes, values


def main() -> None:
    known, write = budgets(), sys.stdout.write
    write("| function | dtype | values | at | derivatives | at |\n|---|---|---|---|---|---|\n")
    for sweep in SWEEPS:
        for dtype in sweep.dtypes:
            found = [values(sweep, dtype), slopes(sweep, dtype)]
            known.setdefault(sweep.name, {}).setdefault(dtype, [_budget(worst) for worst in found])
            write(f"| `{sweep.name}` | {dtype} | {' | '.join(map(_cells, found))} |\n")
    if "--record" in sys.argv:
        BUDGETS.write_text(json.dumps(known, indent=1) + "\n")


def _budget(worst: Worst | None) -> Any:
    """Half as much again as was measured, as compilers and machines differ in the last digit."""
    return None if worst is None else math.ceil(1.5 * worst.ulp + 1) if math.isfinite(worst.ulp) else "inf"


def _cells(worst: Worst | None) -> str:
    return " | " if worst is None else f"{worst.ulp:.3g} | {worst.at}"


if __name__ == "__main__":
    main()
