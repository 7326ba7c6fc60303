"""Kernels for a GPU as Triton modules, which MLIR verifies; no GPU's compiler is needed."""
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import lax
from xlamini.errors import KernelError
from xlamini.experimental import pallas as pl
from xlamini.experimental.pallas import tpu as pltpu, triton as plt
from xlamini.lowering.kernels.triton_call import launch_grid, triton_module

ROWS = pl.BlockSpec((8, 128), lambda i: (i, 0))


def shaped(*shape: int, dtype: str = "float32") -> Any:
    return xlamini.ShapeDtypeStruct(shape, dtype)


def lowered(call: Any, *args: Any) -> str:
    """The text of the program for a GPU."""
    return xlamini.jit(call).trace(*args).lower(lowering_platforms=("cuda",)).as_text()


def kernel_of(call: Any, *args: Any) -> Any:
    (eqn,) = xlamini.make_jaxpr(call)(*args).jaxpr.eqns
    return eqn.params["kernel"]


def text(call: Any, *args: Any) -> str:
    """The text of the kernel's module."""
    return str(triton_module(kernel_of(call, *args)))


def copy(x: Any, o: Any) -> None:
    o[...] = x[...]


def of_whole(fun: Callable[..., Any], *args: Any) -> str:
    """The text of a kernel that applies a function to the whole of its operands."""

    def kernel(*refs: Any) -> None:
        *ins, out = refs
        out[...] = fun(*(ref[...] for ref in ins))

    return text(pl.pallas_call(kernel, xlamini.eval_shape(fun, *args)), *args)


X, H, N = shaped(16, 32), shaped(16, 32, dtype="bfloat16"), shaped(16, 32, dtype="int32")
U, B = shaped(16, 32, dtype="uint32"), shaped(16, 32, dtype="int8")

OPERATIONS = {
    "arith.addf": (lambda x: x + x, X),
    "arith.addi": (lambda x: x + x, N),
    "arith.divui": (lambda x: lax.div(x, x), U),
    "arith.cmpi ult": (lambda x, y: jnp.where(x < y, x, y), U, U),
    "math.exp %": (jnp.exp, X),
    'symbol = "__nv_tanhf"': (jnp.tanh, X),
    'symbol = "__nv_log1pf"': (jnp.log1p, H),
    "tanh.approx.f32": (plt.approx_tanh, H),
    "arith.extf": (lambda x: x.astype("float32"), H),
    "arith.uitofp": (lambda x: x.astype("float32"), U),
    "arith.fptoui": (lambda x: x.astype("uint32"), X),
    "tt.fp_to_fp": (lambda x: x.astype("float8_e4m3fn"), X),
    "tt.bitcast": (lambda x: lax.bitcast_convert_type(x, "int32"), X),
    "tt.reduce.return": (lambda x: x.sum(1, keepdims=True), X),
    "arith.maxsi": (lambda x: x.max(0), N),
    "tt.scan.return": (lambda x: jnp.cumsum(x, 1), X),
    "reverse = true": (lambda x: lax.cummax(x, 1, reverse=True), X),
    "tt.expand_dims": (lambda x: x[:, None, :], X),
    "tt.splat": (lambda x: x + x.sum(), X),
    "tt.reshape": (lambda x: x.reshape(32, 16), X),
    "tt.trans": (lambda x: x.T, X),
    "tt.make_range": (lambda x: x + jnp.arange(32), N),
    "tt.join": (lambda x: jnp.concatenate([x, x]), X),
    "tt.split": (lambda x: x[:8], X),
    "tt.gather": (lambda x: x[::-1], X),
    "inputPrecision = tf32": (lambda x: x @ x.T, X),
    "inputPrecision = tf32x3": (lambda x: jnp.dot(x, x.T, precision="high"), X),
    "inputPrecision = bf16x3": (lambda x: jnp.dot(x, x.T, precision=lax.DotAlgorithmPreset.BF16_BF16_F32_X3), X),
    "tensor<16x32xi8> * tensor<32x16xi8> -> tensor<16x16xi32>": (partial(plt.dot, trans_b=True), B, B),
    "tensor<2x16x32xf32> * tensor<2x32x16xf32>": (
        lambda x: jnp.einsum("bij,bkj->bik", x, x), shaped(2, 16, 32)),
    "scf.for": (lambda x: lax.fori_loop(0, 4, lambda i, c: 2 * c, x), X),
    "scf.while": (lambda x: lax.while_loop(lambda c: c.sum() < 1, lambda c: 2 * c, x), X),
    "scf.if": (lambda x: lax.cond(x.sum() > 0, jnp.sin, jnp.cos, x), X),
}  # fmt: skip


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations(name: str) -> None:
    assert name in of_whole(*OPERATIONS[name])


def test_the_highest_precision_is_what_triton_does_by_default() -> None:
    made = of_whole(lambda x: jnp.dot(x, x.T, precision="highest"), X)
    assert "tt.dot" in made
    assert "inputPrecision" not in made


# --- memory


def test_the_arguments_are_pointers_to_operands_and_results() -> None:
    made = text(pl.pallas_call(copy, shaped(16)), shaped(16, dtype="bool"))
    assert "tt.func public @copy(%arg0: !tt.ptr<i8> {tt.divisibility = 16 : i32}, %arg1: !tt.ptr<f32>" in made


def test_only_blocks_that_reach_beyond_the_end_have_masks() -> None:
    call = lambda n: pl.pallas_call(copy, shaped(n, 128), grid=4, in_specs=[ROWS], out_specs=ROWS)
    assert "arith.cmpi" not in text(call(32), shaped(32, 128))
    assert text(call(30), shaped(30, 128)).count("arith.cmpi slt") == 2


def test_large_arrays_have_offsets_of_64_bits() -> None:
    block = pl.BlockSpec((8, 128), lambda i, j: (i, j))
    call = lambda rows: pl.pallas_call(copy, shaped(rows, 2**15), grid=(4, 4), in_specs=[block], out_specs=block)
    assert "i64" not in text(call(2**15), shaped(2**15, 2**15))
    assert "arith.extsi" in text(call(2**17), shaped(2**17, 2**15))


def test_an_element_is_a_scalar() -> None:
    def kernel(x: Any, o: Any) -> None:
        o[0] = x[pl.program_id(0), 3]

    assert "tt.load %" in text(pl.pallas_call(kernel, shaped(1), grid=2), shaped(4, 5))


def test_arrays_of_indices_are_points() -> None:
    def kernel(x: Any, i: Any, o: Any) -> None:
        o[...] = x[i[...]]

    made = text(pl.pallas_call(kernel, shaped(8)), shaped(100), shaped(8, dtype="int32"))
    assert made.count("tt.load") == 2


def test_programs_without_arrays_to_read() -> None:
    def kernel(o: Any) -> None:
        o[...] = jnp.full(8, pl.program_id(0))

    block = pl.BlockSpec((8,), lambda i: (i,))
    assert "tt.load" not in text(pl.pallas_call(kernel, shaped(32, dtype="int32"), grid=4, out_specs=block))


# --- the grid and the call

GRIDS = {
    (): (1, 1, 1),
    (5,): (5, 1, 1),
    (5, 6, 7): (5, 6, 7),
    (2, 3, 5, 7): (6, 5, 7),
    (2, 3, 5, 7, 11): (30, 7, 11),
    (2, 70000): (140000, 1, 1),
    (70000, 2): (70000, 2, 1),
}


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_the_grid_has_three_axes(grid: tuple[int, ...]) -> None:
    def kernel(o: Any) -> None:
        o[0] = sum(pl.program_id(d) for d in range(len(grid)))

    made = kernel_of(pl.pallas_call(kernel, shaped(1, dtype="int32"), grid=grid))
    assert launch_grid(made) == GRIDS[grid]
    assert str(triton_module(made)).count("tt.get_program_id") == sum(n > 1 for n in GRIDS[grid])


def test_parameters_and_aliases_are_in_the_call() -> None:
    params = plt.CompilerParams(num_warps=8, num_stages=2)
    call = pl.pallas_call(copy, shaped(16), compiler_params=params, input_output_aliases={0: 0})
    made = lowered(call, shaped(16))
    for part in ("num_warps = 8 : i32", "num_stages = 2 : i32", "operand_index = 0", "__gpu$xla.gpu.triton"):
        assert part in made


def test_a_kernel_without_programs_is_zeros() -> None:
    assert "custom_call" not in lowered(pl.pallas_call(copy, shaped(16), grid=0), shaped(16))


# --- what a GPU refuses


def _scratch() -> str:
    def kernel(x: Any, o: Any, total: Any) -> None:
        total[...] = x[...]
        o[...] = total[...]

    return lowered(pl.pallas_call(kernel, shaped(16), scratch_shapes=[pltpu.VMEM((16,), "float32")]), shaped(16))


def _of_block(size: int) -> str:
    block = pl.BlockSpec((size, 16), lambda i: (i, 0))
    call = pl.pallas_call(copy, shaped(96, 16), grid=96 // size, in_specs=[block], out_specs=block)
    return lowered(call, shaped(96, 16))


def _in_memory(space: Any) -> str:
    return lowered(pl.pallas_call(copy, shaped(16), in_specs=[pl.BlockSpec(memory_space=space)]), shaped(16))


def _copied(dtype: str) -> str:
    return lowered(pl.pallas_call(copy, shaped(8, dtype=dtype)), shaped(8, dtype=dtype))


def _printed(x: Any) -> Any:
    xlamini.debug.print("{}", x[0, 0])
    return x


REFUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "a block of 24": (lambda: _of_block(24), r"operand 0 is read or written in parts of shape \(24, 16\).*\(32, 16\)"),
    "a value of 15": (lambda: of_whole(lambda x: x[:15].sum(0), X), r"slice, at .*test_triton_text.*shape \(15, 32\)"),
    "scratch memory": (_scratch, "has scratch memory.*fori_loop"),
    "a memory of a TPU": (lambda: _in_memory(pltpu.VMEM), "puts operand 0 into vmem, a memory of TPUs"),
    "a small product": (lambda: of_whole(lambda x: x[:8] @ x.T, X), "8x32.*at least 16x16"),
    "a product of ints": (lambda: of_whole(lambda x: jnp.matmul(x, x.T), N), "other integers than int8"),
    "a sort": (lambda: of_whole(lambda x: jnp.sort(x, 1), X), "sort, at .* no rule for stablehlo.sort"),
    "complex numbers": (lambda: _copied("complex64"), "complex64, which a GPU's kernel does not have"),
    "int4": (lambda: _copied("int4"), "operand 0 of copy is of dtype int4"),
    "a sum of bytes": (
        lambda: of_whole(lambda x: x + x, shaped(8, dtype="float8_e4m3fn")), "floats of 8 bits.*convert to float32"),
    "a side effect": (lambda: of_whole(_printed, X), "has a side effect, debug"),
    "different parts": (lambda: of_whole(lambda x: jnp.concatenate([x, x[:8], x[:8]]), X), "parts of different sizes"),
    "an atomic maximum of halves": (
        lambda: text(pl.pallas_call(_maximum, shaped(8, dtype="float16")), shaped(8, dtype="float16")),
        "float16 by max"),
    "an atomic sum of bytes": (
        lambda: text(pl.pallas_call(_sum, shaped(8, dtype="int8")), shaped(8, dtype="int8")), "updates int8"),
}  # fmt: skip


def _maximum(x: Any, o: Any) -> None:
    plt.atomic_max(o, ..., x[...])


def _sum(x: Any, o: Any) -> None:
    plt.atomic_add(o, ..., x[...])


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_say_what_to_do(name: str) -> None:
    make, message = REFUSED[name]
    with pytest.raises(KernelError, match=f"(?s){message}"):
        make()


def test_bad_parameters() -> None:
    with pytest.raises(ValueError, match="power of two, got 3"):
        plt.CompilerParams(num_warps=3)
    with pytest.raises(ValueError, match="1 or more"):
        plt.CompilerParams(num_stages=0)
