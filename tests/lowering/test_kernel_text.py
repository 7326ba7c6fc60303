"""The interpreter of kernel modules: what it computes, and what it refuses as a device would."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tests.support.kernel_text.machine import KernelTextError
from tests.support.kernel_text.run import run_mosaic, run_triton

BFLOAT16 = ml_dtypes.bfloat16
FLOATS = "tensor<16xf32>", "tensor<16x!tt.ptr<f32>>"


def triton(body: str, arguments: str = "%x: !tt.ptr<f32>, %o: !tt.ptr<f32>") -> str:
    """A module of Triton's whose kernel has `%xp` and `%op`, pointers to 16 elements for each program."""
    return f"""module {{ tt.func public @kernel({arguments}) {{
        %id = tt.get_program_id x : i32
        %size = arith.constant 16 : i32
        %first = arith.muli %id, %size : i32
        %range = tt.make_range {{start = 0 : i32, end = 16 : i32}} : tensor<16xi32>
        %start = tt.splat %first : i32 -> tensor<16xi32>
        %at = arith.addi %start, %range : tensor<16xi32>
        %xs = tt.splat %x : !tt.ptr<f32> -> {FLOATS[1]}
        %xp = tt.addptr %xs, %at : {FLOATS[1]}, tensor<16xi32>
        %os = tt.splat %o : !tt.ptr<f32> -> {FLOATS[1]}
        %op = tt.addptr %os, %at : {FLOATS[1]}, tensor<16xi32>
        {body}
        tt.return }} }}"""


COPY = f"%v = tt.load %xp : {FLOATS[1]}\n tt.store %op, %v : {FLOATS[1]}"


def copied(count: int, grid: int, body: str = COPY) -> np.ndarray:
    x = np.arange(count, dtype=np.float32)
    return run_triton(triton(body), [x], [((count,), np.float32)], (grid,))[0]


def test_programs_of_a_grid() -> None:
    np.testing.assert_array_equal(copied(48, 3), np.arange(48))


def test_an_access_beyond_the_end_is_an_error() -> None:
    with pytest.raises(KernelTextError, match="elements 32 to 47 of operand 0, which has 40"):
        copied(40, 3)


def test_a_mask_allows_it() -> None:
    body = f"""%count = arith.constant dense<40> : tensor<16xi32>
        %inside = arith.cmpi slt, %at, %count : tensor<16xi32>
        %v = tt.load %xp, %inside : {FLOATS[1]}
        tt.store %op, %v, %inside : {FLOATS[1]}"""
    np.testing.assert_array_equal(copied(40, 3, body), np.arange(40))


def test_what_no_program_writes_is_poison() -> None:
    assert np.isnan(copied(48, 2)[32:]).all()


def test_what_a_mask_leaves_out_is_poison() -> None:
    body = f"""%none = arith.constant dense<false> : tensor<16xi1>
        %v = tt.load %xp, %none : {FLOATS[1]}
        tt.store %op, %v : {FLOATS[1]}"""
    assert np.isnan(copied(16, 1, body)).all()


def test_programs_that_write_the_same_element_race() -> None:
    body = f"%v = tt.load %xp : {FLOATS[1]}\n tt.store %os, %v : {FLOATS[1]}"
    with pytest.raises(KernelTextError, match="a race: program 0 writes an element of operand 1 that program 1 wrote"):
        copied(32, 2, body)


def test_a_program_that_reads_what_another_writes_races() -> None:
    body = f"{COPY}\n %w = tt.load %op : {FLOATS[1]}\n %l = tt.load %o : !tt.ptr<f32>"
    with pytest.raises(KernelTextError, match="a race"):
        copied(32, 2, body + "\n tt.store %o, %l : !tt.ptr<f32>")


def test_float32_products_are_of_tf32() -> None:
    square = "tensor<16x16xf32>"
    body = f"""%one = arith.constant dense<1.0001> : {square}
        %zero = arith.constant dense<0.0> : {square}
        %p = tt.dot %one, %one, %zero, inputPrecision = PRECISION : {square} * {square} -> {square}
        %s = "tt.reduce"(%p) <{{axis = 0 : i32}}> ({{ ^bb0(%a: f32, %b: f32):
            %m = arith.maximumf %a, %b : f32
            tt.reduce.return %m : f32 }}) : ({square}) -> {FLOATS[0]}
        tt.store %op, %s : {FLOATS[1]}"""
    assert (copied(16, 1, body.replace("PRECISION", "tf32")) == 16).all()
    np.testing.assert_allclose(copied(16, 1, body.replace("PRECISION", "ieee")), 16 * 1.0001**2, rtol=1e-6)


def mosaic(body: str, shape: str = "8x128xf32", grid: int = 2, block: int = 8) -> str:
    """A module of Mosaic's with an operand and a result, in blocks along the first axis."""
    ref = f"memref<{shape}, #tpu.memory_space<vmem>>"
    window = f"window_bounds = array<i64: {block}, 128>"
    return f"""module {{ func.func @kernel(%g: i32, %x: {ref}, %o: {ref}) attributes {{
        dimension_semantics = [#tpu.dimension_semantics<arbitrary>], iteration_bounds = array<i64: {grid}>,
        scalar_prefetch = 0 : i64, scratch_operands = 0 : i64, tpu.core_type = #tpu.core_type<tc>,
        window_params = [{{transform_indices = @at, {window}}}, {{transform_indices = @at, {window}}}]}} {{
        %i0 = arith.constant 0 : index
        {body.replace("REF", ref).replace("VECTOR", f"vector<{shape}>")}
        return }}
      func.func @at(%g: i32) -> (i32, i32) {{ %z = arith.constant 0 : i32
        return %g, %z : i32, i32 }} }}"""


DOUBLE = """%v = vector.load %x[%i0, %i0] : REF, VECTOR
    %w = arith.addf %v, %v : VECTOR
    tpu.vector_store %o[%i0, %i0], %w {strides = array<i32>} : REF, VECTOR,"""


def test_blocks_are_copied_in_and_out() -> None:
    x = np.arange(13 * 128, dtype=np.float32).reshape(13, 128)
    np.testing.assert_array_equal(run_mosaic(mosaic(DOUBLE), [x], [((13, 128), np.float32)])[0], 2 * x)


def test_a_block_beyond_the_array_is_an_error() -> None:
    x = np.zeros((13, 128), np.float32)
    with pytest.raises(KernelTextError, match=r"block \(2, 0\) is not in the array of shape \(13, 128\)"):
        run_mosaic(mosaic(DOUBLE, grid=3), [x], [((13, 128), np.float32)])


def test_values_beyond_the_end_are_poison() -> None:
    body = """%v = vector.load %x[%i0, %i0] : REF, VECTOR
        %zero = arith.constant dense<0.0> : vector<128xf32>
        %s = vector.multi_reduction <add>, %v, %zero [0] : VECTOR to vector<128xf32>
        %b = vector.broadcast %s : vector<128xf32> to VECTOR
        tpu.vector_store %o[%i0, %i0], %b {strides = array<i32>} : REF, VECTOR,"""
    (out,) = run_mosaic(mosaic(body), [np.ones((13, 128), np.float32)], [((13, 128), np.float32)])
    assert (out[:8] == 8).all()
    assert np.isnan(out[8:]).all()


def test_results_in_the_fast_memory_start_as_poison() -> None:
    body = DOUBLE.replace("vector.load %x", "vector.load %o")
    (out,) = run_mosaic(mosaic(body), [np.ones((16, 128), np.float32)], [((16, 128), np.float32)], {0: 0})
    assert np.isnan(out).all()


def test_an_access_beyond_a_ref_is_an_error() -> None:
    body = f"%i4 = arith.constant 4 : index\n {DOUBLE}".replace("%x[%i0", "%x[%i4")
    with pytest.raises(KernelTextError, match=r"a part of shape \(8, 128\) at \[4, 0\]"):
        run_mosaic(mosaic(body), [np.ones((16, 128), np.float32)], [((16, 128), np.float32)])


def test_bfloat16_is_rounded_after_each_operation() -> None:
    x = np.full((16, 128), 1.0078125, BFLOAT16)
    body = DOUBLE.replace("addf", "mulf")
    (out,) = run_mosaic(mosaic(body, "8x128xbf16"), [x], [((16, 128), BFLOAT16)])
    assert (out == BFLOAT16(1.015625)).all()


def copies(steps: str) -> str:
    """A kernel of one program that copies an array by itself, by way of scratch memory and a semaphore."""
    array, buffer = "memref<16x128xf32, #tpu.memory_space<any>>", "memref<16x128xf32, #tpu.memory_space<vmem>>"
    semaphore = "memref<!tpu.dma_semaphore, #tpu.memory_space<semaphore_mem>>"
    enqueue = lambda a, b, x, y: (
        f"tpu.enqueue_dma source({a} : {x}) target({b} : {y}) target_semaphore(%s : {semaphore})"
    )
    wait = lambda a, b, x, y: f"tpu.wait_dma2 semaphore(%s : {semaphore}) src({a} : {x}) dst({b} : {y})"
    lines = {
        "in": enqueue("%x", "%v", array, buffer), "wait in": wait("%x", "%v", array, buffer),
        "out": enqueue("%v", "%o", buffer, array), "wait out": wait("%v", "%o", buffer, array),
    }  # fmt: skip
    return f"""module {{ func.func @kernel(%g: i32, %x: {array}, %o: {array}, %v: {buffer}, %s: {semaphore})
        attributes {{
        dimension_semantics = [#tpu.dimension_semantics<arbitrary>], iteration_bounds = array<i64: 1>,
        scalar_prefetch = 0 : i64, scratch_operands = 2 : i64, tpu.core_type = #tpu.core_type<tc>,
        window_params = [{{}}, {{}}]}} {{
        {chr(10).join(lines[s.strip()] for s in steps.split(","))}
        return }} }}"""


def by_copies(steps: str) -> np.ndarray:
    x = np.ones((16, 128), np.float32)
    return run_mosaic(copies(steps), [x], [(x.shape, x.dtype)])[0]


def test_copies() -> None:
    assert (by_copies("in, wait in, out, wait out") == 1).all()


def test_a_copy_that_nobody_has_waited_for_has_not_arrived() -> None:
    assert np.isnan(by_copies("in, out, wait in, wait out")).all()


def test_a_copy_that_nobody_waits_for_is_an_error() -> None:
    with pytest.raises(KernelTextError, match="no program waits for"):
        by_copies("in, wait in, out")


def test_a_wait_without_a_copy_is_an_error() -> None:
    with pytest.raises(KernelTextError, match="would not end"):
        by_copies("wait in")
