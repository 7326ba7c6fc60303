"""What a TPU's and a GPU's compiler make of kernels, beside what they make of the same kernels in JAX.

figures/pallas_of_jax.json has JAX's figures, of its Pallas kernels exported and compiled by the same compilers.
"""
from __future__ import annotations

import functools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import xlamini
import xlamini.numpy as jnp
from tests.aot.conftest import target_or_skip
from tests.aot.counts import compiled, shaped
from xlamini import lax
from xlamini.errors import PlatformError
from xlamini.experimental import pallas as pl
from xlamini.experimental.pallas import tpu as pltpu
from xlamini.runtime.kernels import tpu as tpu_reader
from xlamini.staging.aot.kernel_queries import read_kernels

JAX = json.loads((Path(__file__).parent / "figures/pallas_of_jax.json").read_text())
TPU, GPU = "tpu:v5e:2x2", "gpu:h200"
MARGIN = 1.02
LENGTH, WIDTH, TILE, HEADS = 2048, 128, 128, 8
Call = tuple[Callable[..., Any], tuple[Any, ...]]


def rmsnorm() -> Call:
    def kernel(x_ref: Any, g_ref: Any, o_ref: Any) -> None:
        x = x_ref[...].astype(jnp.float32)
        o_ref[...] = (x * lax.rsqrt((x * x).mean(-1, keepdims=True) + 1e-6) * g_ref[...]).astype(o_ref.dtype)

    rows, gain = pl.BlockSpec((8, 1024), lambda i: (i, 0)), pl.BlockSpec((1, 1024), lambda i: (0, 0))
    x = shaped(4096, 1024, dtype="bfloat16")
    return pl.pallas_call(kernel, x, grid=512, in_specs=[rows, gain], out_specs=rows), (x, shaped(1, 1024))


def softmax(rows: int = 8) -> Call:
    def kernel(x_ref: Any, o_ref: Any) -> None:
        x = x_ref[...]
        e = jnp.exp(x - x.max(-1, keepdims=True))
        o_ref[...] = e / e.sum(-1, keepdims=True)

    block, x = pl.BlockSpec((rows, 1024), lambda i: (i, 0)), shaped(4096, 1024)
    return pl.pallas_call(kernel, x, grid=4096 // rows, in_specs=[block], out_specs=block), (x,)


def attention(q_ref: Any, k_ref: Any, v_ref: Any, o_ref: Any) -> None:
    q = q_ref[...]

    def step(i: Any, carry: Any) -> Any:
        m, total, acc = carry
        k, v = k_ref[pl.ds(i * TILE, TILE), :], v_ref[pl.ds(i * TILE, TILE), :]
        s = lax.dot_general(q, k, (((1,), (1,)), ((), ())), preferred_element_type=jnp.float32) * WIDTH**-0.5
        top = jnp.maximum(m, s.max(1, keepdims=True))
        p, a = jnp.exp(s - top), jnp.exp(m - top)
        update = jnp.dot(p.astype(v.dtype), v, preferred_element_type=jnp.float32)
        return top, total * a + p.sum(1, keepdims=True), acc * a + update

    column = (TILE, 1)
    first = jnp.full(column, -1e30, jnp.float32), jnp.zeros(column, jnp.float32), jnp.zeros((TILE, WIDTH), jnp.float32)
    _, total, acc = lax.fori_loop(0, LENGTH // TILE, step, first)
    o_ref[...] = (acc / total).astype(o_ref.dtype)


def flash() -> Call:
    tiles = LENGTH // TILE
    q = pl.BlockSpec((TILE, WIDTH), lambda h, i: (h * tiles + i, 0))
    kv, x = pl.BlockSpec((LENGTH, WIDTH), lambda h, i: (h, 0)), shaped(HEADS * LENGTH, WIDTH, dtype="bfloat16")
    return pl.pallas_call(attention, x, grid=(HEADS, tiles), in_specs=[q, kv, kv], out_specs=q), (x, x, x)


def matmul() -> Call:
    def kernel(x_ref: Any, y_ref: Any, o_ref: Any, acc: Any) -> None:
        @pl.when(pl.program_id(2) == 0)
        def _() -> None:
            acc[...] = jnp.zeros_like(acc)

        acc[...] += jnp.dot(x_ref[...], y_ref[...], preferred_element_type=jnp.float32)

        @pl.when(pl.program_id(2) == pl.num_programs(2) - 1)
        def _() -> None:
            o_ref[...] = acc[...].astype(o_ref.dtype)

    maps = (lambda i, j, k: (i, k)), (lambda i, j, k: (k, j)), (lambda i, j, k: (i, j))
    *ins, out = (pl.BlockSpec((256, 256), index_map) for index_map in maps)
    x, scratch = shaped(1024, 1024, dtype="bfloat16"), [pltpu.VMEM((256, 256), jnp.float32)]
    call = pl.pallas_call(kernel, x, grid=(4, 4, 4), in_specs=ins, out_specs=out, scratch_shapes=scratch)
    return call, (x, x)


KERNELS = {"rmsnorm": rmsnorm, "softmax": softmax, "flash": flash, "matmul": matmul}


@functools.cache
def rows(spec: str) -> dict[str, Any]:
    """The row of each kernel, all read at once."""
    target = target_or_skip(spec)
    programs = {name: compiled(call[0], target, *call[1]) for name in JAX[spec] for call in [KERNELS[name]()]}
    read_kernels(list(programs.values()))
    return {name: program.kernels()[0] for name, program in programs.items()}


@pytest.mark.parametrize("name", JAX[TPU])
def test_a_tpu_runs_no_more_bundles_than_jax(name: str) -> None:
    code, theirs = rows(TPU)[name].code, JAX[TPU][name]
    assert code.cycles <= MARGIN * theirs["cycles"], code
    assert sum(code.bundles) <= MARGIN * sum(theirs["bundles"]), code
    assert code.spills <= MARGIN * theirs["spills"]
    assert code.vmem <= MARGIN * theirs["vmem"]


@pytest.mark.parametrize("name", JAX[GPU])
def test_a_gpu_runs_no_more_instructions_than_jax(name: str) -> None:
    code, theirs = rows(GPU)[name].code, JAX[GPU][name]
    assert code.instructions <= MARGIN * theirs["instructions"]
    for unit in ("wgmma", "cp.async", "ld.global", "st.global", "shfl", "bar.sync", "ex2"):
        assert code.counts[unit] <= theirs.get(unit, 0), unit
    assert code.counts["wgmma"] == theirs.get("wgmma", 0)
    assert code.shared <= max(MARGIN * theirs["shared"], 1024)


def test_a_row_says_where_a_kernel_is_from() -> None:
    row = rows(TPU)["flash"]
    assert (row.name, row.grid, row.target, row.dialect) == ("attention", (HEADS, LENGTH // TILE), TPU, "Mosaic")
    assert "counts.py:" in row.line  # where jit traces the function that pallas_call returned
    assert "test_kernel_quality.py:" in row.lines[0]
    assert "tpu.matmul" in row.module
    assert row.time is not None
    assert row.time.limit == "bundles"
    assert str(row).splitlines()[0] == f"1 kernel for {TPU}"


def test_a_gpus_row_has_ptx() -> None:
    row = rows(GPU)["flash"]
    assert (row.name, row.dialect) == ("attention", "Triton")
    assert "tt.dot" in row.module
    assert ".entry attention(" in row.code.ptx
    assert row.code.threads == 128
    assert "wgmma" in str(row)


def test_candidates_are_ranked(tpu: Any) -> None:
    found = pl.tune(lambda rows: softmax(rows)[0], [4, 8, 64, 4096], shaped(4096, 1024), target=tpu)
    assert found.best == 64
    assert [trial.candidate for trial in found][:2] == [64, 8]
    assert {trial.candidate for trial in found if trial.error} == {4, 4096}
    assert "2 of 4 candidates" in str(found)
    assert "VMEM" in str(found)


def test_candidates_may_be_keyword_arguments(gpu: Any) -> None:
    found = pl.tune(lambda *, rows: softmax(rows)[0], [{"rows": 3}, {"rows": 2}], shaped(4096, 1024), target=gpu)
    assert found.best == {"rows": 2}
    assert "KernelError" in found[1].error


def test_programs_without_kernels_have_no_rows(target: Any) -> None:
    assert str(compiled(jnp.sin, target, shaped(4)).kernels()) == "no kernels for a TPU or a GPU"


def test_several_kernels_of_a_program_have_rows(tpu: Any) -> None:
    (first, (x,)), (second, _) = softmax(8), softmax(16)
    found = compiled(lambda x: second(first(first(x))), tpu, x).kernels()
    assert [each.grid for each in found] == [(512,), (256,)]
    assert found[0].code.cycles > found[1].code.cycles


def test_a_child_that_fails_is_an_error_with_a_fix(tpu: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tpu_reader, "_CHILD", "xlamini.no_such_module")
    call, args = softmax()
    with pytest.raises(PlatformError, match=r"kernels: the process that compiles for tpu:v5e:2x2 failed: .*doctor"):
        compiled(call, tpu, *args).kernels()


def test_inspect_shows_kernels_of_ones_own(target: Any) -> None:
    call, args = softmax()
    report = xlamini.inspect(call, targets=[target.name])(*args)
    text = report.text("kernels", limit=3)
    assert "kernel kernel, at " in text
    assert "spills 0" in text
    assert "more lines; limit=" in text
    (own,) = report.json()["targets"][0]["own_kernels"]
    assert own["grid"][0] == 512
