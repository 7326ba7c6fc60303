"""Mistakes of one line each, to see whether the tests find them: `python -m tests.support.planted_mistakes [NAME...]`.

Each is planted in a copy of the checkout, where the quick tier of the folders in which it ought to be seen runs to its
first failure. The command prints what found it. With `--full` the full tier runs.
"""
from __future__ import annotations

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from tests.support.paths import ROOT

SECONDS = 600
"""Tests that take longer hang."""


class Mistake(NamedTuple):
    """A line of a file of `xlamini/` that is right, what is written in its place, and which tests ought to see it."""

    file: str
    right: str
    wrong: str
    tests: str


MISTAKES = {
    "a tangent off by an ulp": Mistake(
        "primitives/forms/cpu/math/circular.py", "1.5707963267554275, -0.2788681238929191",
        "1.5707963267554275, -0.2788683238929191", "primitives/test_cpu_math.py",
    ),
    "the padding of a reversed scan in blocks": Mistake(
        "primitives/forms/cpu/loops/blocked_scan.py", "first = missing if scan.reverse else 0", "first = 0",
        "primitives/test_cpu_reductions.py",
    ),
    "a pass drops effects": Mistake(
        "interpreters/dce.py", "if live.isdisjoint(eqn.outvars) and not eqn.effects:",
        "if live.isdisjoint(eqn.outvars):", "transforms/test_callbacks.py",
    ),
    "a flag that is in no key": Mistake(
        "core/flags/compile_flags.py", "disable_most_optimizations, compiler_enable_remat_pass)",
        "disable_most_optimizations)", "core/test_compile_flags.py",
    ),
    "effects of a scan lose their order": Mistake(
        "transforms/scan/lowering.py", "ordered = any_ordered(self.jaxpr.effects)", "ordered = False",
        "test_planted_mistakes.py",
    ),
    "a callback of a scan runs once under grad": Mistake(
        "transforms/scan/residuals.py", "if new and not first.effects:", "if new:",
        "test_planted_mistakes.py",
    ),
    "the tangent of a branch not taken": Mistake(
        "transforms/cond/as_select.py", "_stop_others(chose, x) if is_differentiable(aval_of(x)) else x", "x",
        "test_planted_mistakes.py",
    ),
    "the tangent of a reversed running result": Mistake(
        "primitives/reductions/cumulative.py", "turned(primals[0]), turned(tangents[0])",
        "turned(primals[0]), tangents[0]", "primitives/test_cpu_reductions.py test_rows.py",
    ),
    "operands that are split differently": Mistake(
        "core/sharding/propagation.py", "            self.found[label] = ()\n", "", "test_planted_mistakes.py",
    ),
    "a permutation of one round": Mistake(
        "random/permutation.py", "math.ceil(3 * math.log", "math.ceil(math.log", "test_planted_mistakes.py",
    ),
    "uniform floats between arrays": Mistake(
        "random/uniform.py", "(high / 2 - low / 2) + low / 2", "(high / 2 - low / 2) + low", "test_planted_mistakes.py",
    ),
    "a prefix repeated once": Mistake(
        "core/pytree/prefix.py", "[leaf] * _structure(subtree).num_leaves",
        "[leaf] * min(2, _structure(subtree).num_leaves)", "core/test_pytree.py transforms/test_transforms.py",
    ),
    "a cache key without compiler options": Mistake(
        "runtime/files/disk_key.py", '"compiler options": _shown(compiler_options or {}),\n        "flags"', '"flags"',
        "runtime/test_disk_cache.py runtime/test_module_key.py",
    ),
    "the cotangent of a strided kernel": Mistake(
        "primitives/windows/conv_transposes.py", "lhs_dilation=window_strides,\n        rhs_dilation=rhs_dilation,",
        "lhs_dilation=window_strides,\n        rhs_dilation=lhs_dilation,",
        "primitives/test_conv_gradients.py test_rows.py",
    ),
    "uint16 and int16 make int64": Mistake(
        "core/dtypes/lattice.py", "(u16, i32)", "(u16, i64)", "core/test_dtypes.py",
    ),
    "a donated keyword is kept": Mistake(
        "staging/run/jit/donation.py", "(kwargs[name], name in donate.names)", "(kwargs[name], False)",
        "test_planted_mistakes.py",
    ),
    "a bool among the residuals is an array": Mistake(
        "transforms/custom/vjp_rule.py", "type(residual) in (bool, int, float, complex)",
        "type(residual) in (int, float, complex)", "transforms/test_custom_vjp.py",
    ),
    "a checkpoint policy that saves batched products": Mistake(
        "transforms/remat/policies.py", 'primitive is dot_general_p and not any(params["dimension_numbers"][1])',
        "primitive is dot_general_p", "transforms/test_checkpoint.py",
    ),
    "sorted indices of a batched scatter": Mistake(
        "primitives/indexing/scatter_family.py", "with_common_batch(dimension_numbers), False",
        "with_common_batch(dimension_numbers), indices_are_sorted", "test_planted_mistakes.py",
    ),
    "an unrolled scan backward": Mistake(
        "transforms/scan/lowering.py", "at = size - 1 - k if self.steps.reverse else k", "at = k",
        "transforms/test_scan.py",
    ),
}


def copied(folder: Path) -> None:
    """Copy what git knows of the checkout."""
    names = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True).stdout
    subprocess.run(f"tar --null -T - -cf - | tar -xf - -C '{folder}'", shell=True, cwd=ROOT, input=names, check=True)


@contextmanager
def planted(folder: Path, mistake: Mistake) -> Iterator[None]:
    """The copy has the mistake."""
    path = folder / "xlamini" / mistake.file
    text = path.read_text()
    assert text.count(mistake.right) == 1, f"{path}: not once: {mistake.right}"
    path.write_text(text.replace(mistake.right, mistake.wrong))
    yield
    path.write_text(text)


def finder(folder: Path, mistake: Mistake, full: bool) -> str | None:
    """The first test that fails; None if all pass. As paths of the command line choose the full tier, they are set."""
    paths = " ".join(f"tests/{each}" for each in mistake.tests.split())
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-o", f"testpaths={paths}", *(["--full"] if full else [])]
    variables = {**os.environ, "PYTHONPATH": str(folder)}
    try:
        ran = subprocess.run(command, cwd=folder, env=variables, capture_output=True, text=True, timeout=SECONDS)
    except subprocess.TimeoutExpired:
        return "a test that does not end"
    found = re.search(r"^(?:FAILED|ERROR) (\S+)", ran.stdout, re.MULTILINE)
    if ran.returncode and not found:
        return (ran.stdout + ran.stderr)[-300:]
    return found and found[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="some of the mistakes; all if none is named")
    parser.add_argument("--full", action="store_true", help="the full tier")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        copied(Path(folder))
        for name in given.names or MISTAKES:
            with planted(Path(folder), MISTAKES[name]):
                found = finder(Path(folder), MISTAKES[name], given.full)
            sys.stdout.write(f"{name}: {found or 'NOT FOUND'}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
