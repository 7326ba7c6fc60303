"""The tests of transformations, control flow, custom rules and random numbers, run as they are on the accelerator.

Each file runs in a process of its own in which the accelerator is the default platform.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

ON_THE_CPU_ONLY = {
    "numpy/test_indexing.py": "put_on_device",  # indices that are on a GPU are not read before the program runs
    "transforms/test_scan.py": "test_weak_types",  # how a product of bfloat16 is rounded is the compiler's choice
    "primitives/test_dot_general.py": "test_precision_reaches_stablehlo or test_printed",  # it is set for all
    "transforms/test_scan_rules.py": "test_printed",
    "transforms/test_callbacks.py": "int4",  # a GPU's parts of bytes do not pass to Python
    "runtime/test_runtime.py": "dlpack_shares_memory or compares_by_device or platforms_by_name or virtual_cpu_devices",
    "primitives/test_sort.py": "on_the_cpu",
    "random/test_random.py": "computed_once",
}
"""Tests, as `-k` selects them, that say how things are on a CPU."""
FOLDERS = {
    "transforms": """
        test_transforms test_differentiation test_programs test_jax_programs test_scan test_scan_rules
        test_scan_derivatives test_cond test_while_loop test_fori_loop test_map test_bounded_while test_custom_jvp
        test_custom_vjp test_custom_vmap test_custom_root test_custom_linear_solve test_checkpoint test_callbacks
        test_ref
    """,
    "numpy": "test_at test_indexing test_einsum",
    "primitives": "test_dot_general test_windows test_sort",
    "random": "test_random test_random_statistics",
    "interpreters": "test_interpreters",
    "staging": "test_donation test_stages",
    "runtime": "test_runtime test_effects",
}
FILES = [f"{folder}/{name}.py" for folder, names in FOLDERS.items() for name in names.split()] + ["test_regressions.py"]
SECONDS = 900


@pytest.mark.parametrize("name", FILES)
def test_on_the_accelerator(name: str, accelerator: Any, request: pytest.FixtureRequest) -> None:
    path = request.path.parent.parent / name
    platform = {"platforms": f"{accelerator.client.platform},cpu", "default_matmul_precision": "highest"}
    flags = {f"XLAMINI_{flag.upper()}": value for flag, value in platform.items()}
    chosen = f"not ({ON_THE_CPU_ONLY.get(name, 'nothing')})"
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "-k", chosen, str(path)]
    run = subprocess.run(command, env=os.environ | flags, capture_output=True, text=True, timeout=SECONDS, check=False)
    assert run.returncode == 0, run.stdout[-4000:]
