"""The cases, one per file; `measure(load, settings)` of each returns its measurements.

`load()` imports the library under test and returns it. NAMES gives the order of the table; the
cases in SLOW_NAMES run only on request.
"""

from __future__ import annotations

NAMES = (
    "import_time",
    "transformer",
    "second_process",
    "memory",
    "chain",
    "rewrites",
    "scan",
    "control_flow",
    "dispatch",
    "eager_ops",
    "eager_transforms",
    "kernels",
    "cpu_ops",
)
SLOW_NAMES = ("checks", "transformer_24", "transformer_48", "half_precision", "sharded")
