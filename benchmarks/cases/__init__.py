"""The cases, one idea a file; `measure(load, settings)` of each returns its measurements.

`load()` imports the library under test and returns it. NAMES gives the order of the table; the
cases in SLOW_NAMES run only when asked for.
"""

from __future__ import annotations

NAMES = (
    "import_time",
    "transformer",
    "chain",
    "rewrites",
    "scan",
    "control_flow",
    "dispatch",
    "eager_ops",
    "eager_transforms",
)
SLOW_NAMES = ("transformer_24",)
