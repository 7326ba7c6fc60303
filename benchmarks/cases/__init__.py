"""The cases, one per file; `measure(load, settings)` of each returns its measurements.

`load()` imports the library under test and returns it. NAMES gives the order of the table; the
cases in SLOW_NAMES run only on request. Those in ECOSYSTEM_NAMES do too: they are programs that import `jax` and its
libraries, in the two environments of `tests.ecosystem.environment`.
"""

from __future__ import annotations

NAMES = (
    "import_time",
    "transformer",
    "second_process",
    "second_process_unasked",
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
SLOW_NAMES = (
    "checks", "inspect_report", "transformer_24", "transformer_48", "first_call", "half_precision", "programs",
    "sharded", "scale",
)
ECOSYSTEM_NAMES = ("ecosystem_linen", "ecosystem_nnx", "ecosystem_ode", "ecosystem_nuts")
