"""Every row of tests/rows beside its reference, finite differences and Python loops.

The full tier checks each row for a deterministic sample of its dtypes, shapes and batchings, the quick tier for a
smaller one, and `--all-rows` for all.
"""
from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any, TypeVar

import pytest

import xlamini
from tests.rows import all_rows
from tests.rows.row import Row, Sample
from tests.support import checks, tiers
from xlamini import extend
from xlamini.core.program.bindable import primitives

T = TypeVar("T")

# Primitives that no row calls, and where they are tested instead.
ELSEWHERE = {
    "layout_constraint": "test_layout.py",
    **dict.fromkeys(("dim_as_value", "assume_unequal"), "core/test_symbolic_sizes.py"),
    **dict.fromkeys(("xla_metadata_call", "xla_metadata_value"), "test_xla_metadata.py"),
    "jit": "test_transforms.py",
    **dict.fromkeys(("get", "set", "addupdate"), "test_ref.py and test_ref_in_place.py"),
    "pallas_call": "test_pallas_call.py",
    **dict.fromkeys(("approx_tanh", "hint", "debug_barrier", "masked_load", "masked_store"), "kernel_rows/gpu.py"),
    **dict.fromkeys(("atomic", "atomic_cas"), "kernel_rows/gpu.py"),
    **dict.fromkeys(("start_copy", "wait_copy", "semaphore_signal", "semaphore_wait"), "test_pallas_copies.py"),
    **dict.fromkeys(("prng_seed", "prng_random_bits"), "test_pallas_generator.py"),
    "debug_check": "test_kernel_checks.py",
    **dict.fromkeys(("psum", "pmax", "pmin", "axis_index"), "test_collectives.py"),
    **dict.fromkeys(("all_gather", "reduce_scatter", "all_to_all", "ppermute", "pbroadcast"), "test_named_axes.py"),
    "bounded_while": "test_bounded_while.py",
    "stage": "test_expressions.py",
    **dict.fromkeys(("select_and_scatter", "select_and_scatter_add", "select_and_gather_add"), "test_windows.py"),
    "custom_vmap_call": "test_custom_vmap.py",
    **dict.fromkeys(("custom_lin", "remat_opt"), "test_custom_vjp.py"),
    "linear_call": "test_linear_call.py",
    "breakpoint": "test_breakpoint.py",
    **dict.fromkeys(("remat2", "name"), "test_checkpoint.py"),
    **dict.fromkeys(("debug_callback", "debug_print", "io_callback", "pure_callback"), "test_callbacks.py"),
    **dict.fromkeys(("form", "case"), "lowering/test_specialize.py, in programs for a platform"),
    **dict.fromkeys(("argmax_in_pairs", "argmin_in_pairs"), "test_cpu_reductions.py, in forms of the others"),
    "iterate": "test_rows.py, in what special functions are lowered to",
    "scalar_loop": "test_cpu_sorts.py and test_cpu_reductions.py, in what sorts and scans are lowered to",
    "threefry2x32": "test_random.py",
    "cpu_barrier": "test_random.py, in what keys are split by",
    "window_repeat": "primitives/test_accelerator_forms.py",
    "scatter-winners": "primitives/test_scatter_winners.py, in gradients of a set",
    **dict.fromkeys(("cudnn_attention", "cudnn_attention_backward"), "nn/test_cudnn_attention.py"),
    **dict.fromkeys(("joint_sums", "noinline"), "primitives/test_cpu_windows.py, in what gradients are lowered to"),
    **dict.fromkeys(("shard_map", "pvary", "unvary"), "multidevice/test_shard_map.py"),
    **dict.fromkeys(("addend", "own"), "multidevice/test_divergence.py"),
    **dict.fromkeys(("call_hi_primitive", "call_hi_primitive_linearized", "hi_zeros"), "experimental/test_hijax.py"),
    **dict.fromkeys(("hi_value", "hi_retyped"), "experimental/test_hijax_types.py"),
    **dict.fromkeys(
        (
            "invarying_to_reduced",
            "reduced_to_invarying",
            "unreduced_to_varying",
            "varying_to_reduced",
            "varying_to_unreduced",
        ),
        "multidevice/test_partial_sums_manual.py",
    ),
    "custom_partitioning": "multidevice/test_custom_partitioning.py",
    "device_put": "test_memory_spaces.py",
    "all_gather_invariant": "multidevice/test_shard_map_nested.py",
    "inspect_sharding": "multidevice/test_pictures.py",
    "call_exported": "test_export.py",
    **dict.fromkeys(("check", "first_bad", "look_at"), "experimental/test_checkify.py"),
    "branch": "test_cond.py",
    **dict.fromkeys(("pack", "unpack"), "extend/test_dtypes.py"),
    **dict.fromkeys(("ffi_call", "buffer_callback"), "test_ffi.py and test_buffer_callback.py"),
}


ROWS = all_rows()
DERIVATIVE_DTYPES = ("float64", "complex128")


@pytest.fixture
def some(request: pytest.FixtureRequest) -> Any:
    """A function that selects a few of some things: all with --all-rows, the first in the quick tier."""
    picks = {tiers.ALL: every, tiers.FULL: sampled, tiers.QUICK: only_first}
    return picks[tiers.tier_of(request.config)]


@pytest.fixture
def options(request: pytest.FixtureRequest) -> dict[str, Any] | None:
    """Compiler options for derivative programs: only `--all-rows` compiles them with all optimizations."""
    return None if tiers.tier_of(request.config) == tiers.ALL else checks.UNOPTIMIZED


def every(row: Row, things: Sequence[T], count: int) -> list[T]:
    return list(things)


def only_first(row: Row, things: Sequence[T], count: int) -> list[T]:
    return list(things[:1])


def sampled(row: Row, things: Sequence[T], count: int) -> list[T]:
    """The first of some things, and others chosen by the row's name."""
    first, *rest = things
    chosen = row.rng("sampled", len(rest)).permutation(len(rest))[: count - 1]
    return [first, *(rest[i] for i in sorted(chosen))]


def few(row: Row, usual: int) -> int:
    """How many to pick: one for functions that are made of operations with rows of their own."""
    return 1 if "." in row.name else usual


def each_row(rows: Sequence[Row], slow: str = "") -> Any:
    """One test for each row; `slow` lists the names of rows to mark so, separated by commas."""
    marked = slow.split(", ")
    rows = [pytest.param(r, id=r.name, marks=[pytest.mark.slow] if r.name in marked else []) for r in rows]
    return pytest.mark.parametrize("row", rows)


def derivative_cases(row: Row) -> list[tuple[Sample, str]]:
    """Samples and dtypes in which the row has derivatives."""
    dtypes = [d for d in DERIVATIVE_DTYPES if d in row.dtypes]
    return [(s, d) for d in dtypes for s in row.samples if row.differentiable_argnums(s, d)]


DIFFERENTIABLE = [row for row in ROWS if derivative_cases(row)]


@each_row(ROWS, slow="igamma_grad_a, random.beta, random.f, random.t")
def test_values_and_dtypes(row: Row, some: Any) -> None:
    count = 2 if "." in row.name else 3
    for i, (sample, dtype) in enumerate(some(row, [(s, d) for d in row.dtypes for s in row.samples], count)):
        checks.check_values(row, sample, dtype, under_jit=i == 0)


@each_row(DIFFERENTIABLE, slow="scipy.linalg.expm: upper, scipy.stats.beta.cdf, scipy.stats.chi2.cdf")
def test_derivatives(row: Row, some: Any, options: dict[str, Any] | None) -> None:
    if some is only_first or ("." in row.name and some is not every):  # functions are made of operations
        row = dataclasses.replace(row, order=1)
    for sample, dtype in some(row, derivative_cases(row), few(row, 2)):
        checks.check_derivatives(row, sample, dtype, options)


@each_row([row for row in ROWS if row.batched])
def test_batching(row: Row, some: Any) -> None:
    dtype = row.dtypes[-1] if "float32" not in row.dtypes else "float32"
    for sample in some(row, row.samples, few(row, 2)):
        examples = row.arguments(sample, dtype, row.rng())
        checks.check_batching(row, sample, dtype, some(row, list(checks.in_axes_of(examples)), few(row, 4)))


@each_row([row for row in DIFFERENTIABLE if row.batched])
def test_compositions_of_rewrites(row: Row, some: Any, options: dict[str, Any] | None) -> None:
    for sample, dtype in some(row, derivative_cases(row), 1):
        checks.check_compositions(row, sample, dtype, options)


@each_row([row for row in ROWS if "." not in row.name])
def test_lowers(row: Row, some: Any) -> None:
    for dtype in some(row, row.dtypes, 1):
        with checks.wide(row, dtype):
            arguments = row.arguments(row.samples[0], dtype, row.rng())
            lowered = xlamini.jit(row.op).lower(*arguments)
        assert lowered.compiler_ir().operation.verify()


def test_rows_have_distinct_names() -> None:
    names = [row.name for row in ROWS]
    assert len(names) == len(set(names))


@pytest.mark.full
def test_every_primitive_has_a_row() -> None:
    covered = set().union(*(checks.primitives_of_row(row) for row in ROWS))
    own = [p for p in primitives if type(p).__module__.startswith("xlamini.") and type(p) is not extend.Primitive]
    missing = sorted(p.name for p in own if p not in covered and p.name not in ELSEWHERE)
    assert not missing, f"no row of tests/rows calls {', '.join(missing)}"
    needless = [name for name in ELSEWHERE if name in {p.name for p in covered}]
    assert not needless, f"{needless} have rows, and need no exception"
