"""Kernels for a TPU as Mosaic modules, which MLIR verifies; no TPU's compiler is needed."""
from __future__ import annotations

from typing import Any

import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini.errors import KernelError
from xlamini.experimental import pallas as pl
from xlamini.experimental.pallas import tpu as pltpu
from xlamini.interpreters.expand import expand
from xlamini.lowering.kernels.mosaic_call import serialized
from xlamini.lowering.kernels.mosaic_dialect import mosaic_dialect
from xlamini.lowering.kernels.mosaic_module import kernel_module

ROWS = pl.BlockSpec((8, 128), lambda i: (i, 0))


def shaped(*shape: int, dtype: str = "float32") -> Any:
    return xlamini.ShapeDtypeStruct(shape, dtype)


def module(call: Any, *args: Any) -> Any:
    kernel = xlamini.make_jaxpr(call)(*args).jaxpr.eqns[0].params["kernel"]
    made = kernel_module(mosaic_dialect(), kernel.__class__(**{**vars(kernel), "jaxpr": expand(kernel.jaxpr)}))
    assert made.operation.verify()
    return made


def text(call: Any, *args: Any) -> str:
    return str(module(call, *args))


def elementwise(fun: Any, *args: Any) -> str:
    """The text of a kernel that applies a function to the whole of its operands."""

    def kernel(*refs: Any) -> None:
        *ins, out = refs
        out[...] = fun(*(ref[...] for ref in ins))

    return text(pl.pallas_call(kernel, xlamini.eval_shape(fun, *args)), *args)


X, INTS = shaped(16, 256), shaped(16, 256, dtype="int32")

OPERATIONS = {
    "arith.addf": (lambda x: x + x, X),
    "arith.addi": (lambda x: x + x, INTS),
    "math.exp": (jnp.exp, X),
    "arith.extf": (lambda x: x.astype("float32"), shaped(16, 256, dtype="bfloat16")),
    "arith.uitofp": (lambda x: x.astype("float32"), shaped(16, 256, dtype="uint32")),
    "vector.multi_reduction <add>": (lambda x: x.sum(1), X),
    "vector.multi_reduction <maxsi>": (lambda x: x.max(0), INTS),
    "tpu.reduce_index": (lambda x: jnp.argmax(x, 1), X),
    "tpu.transpose": (lambda x: x.T, X),
    "tpu.iota": (lambda x: x + jnp.arange(256), INTS),
    "tpu.concatenate": (lambda x: jnp.concatenate([x, x]), X),
    "tpu.dynamic_rotate": (lambda x: jnp.cumsum(x, 1), X),
    "vector.extract_strided_slice": (lambda x: x[:8], X),
    "vector.shape_cast": (lambda x: x.reshape(2, 8, 256), X),
    "dot_dimension_numbers<[1], [1], [0], [0], [0, 0, 1, 0], [], []>": (lambda x: jnp.einsum("ij,kj->ik", x, x), X),
    "dot_dimension_numbers<[2], [1], [1], [2], [0, 0, 0, 1, 1, 2], [0], [0]>": (
        lambda x: jnp.einsum("bij,bjk->bik", x, x),
        shaped(2, 128, 128),
    ),
    "contract_precision<fp32>": (lambda x: jnp.dot(x, x.T, precision="highest"), X),
    "scf.for": (lambda x: xlamini.lax.fori_loop(0, 4, lambda i, c: 2 * c, x), X),
    "scf.while": (lambda x: xlamini.lax.while_loop(lambda c: c[0, 0] < 1, lambda c: 2 * c, x), X),
    "scf.if": (lambda x: xlamini.lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x), X),
}


@pytest.mark.parametrize("name", OPERATIONS)
def test_operations(name: str) -> None:
    assert name in elementwise(*OPERATIONS[name])


def test_blocks_and_index_maps() -> None:
    call = pl.pallas_call(_double, shaped(30, 128), grid=4, in_specs=[ROWS], out_specs=ROWS)
    made = text(call, shaped(30, 128))
    assert "iteration_bounds = array<i64: 4>" in made
    assert "window_bounds = array<i64: 8, 128>" in made
    assert "func.func @transform_1(%arg0: i32) -> (i32, i32)" in made


def _printed(x: Any) -> Any:
    xlamini.debug.print("{}", x[0, 0])
    return x


def _double(x: Any, o: Any) -> None:
    o[...] = 2 * x[...]


def test_squeezed_dimensions_are_blocks_of_one() -> None:
    spec = pl.BlockSpec((None, 8, 128), lambda i: (i, 0, 0))
    made = text(pl.pallas_call(_double, shaped(4, 8, 128), grid=4, in_specs=[spec], out_specs=spec), shaped(4, 8, 128))
    assert "memref<1x8x128xf32" in made
    assert "vector.shape_cast" in made


def test_a_kernel_without_a_grid_is_one_program() -> None:
    assert "iteration_bounds = array<i64: 1>" in text(pl.pallas_call(_double, X), X)


def test_scalars_are_in_smem() -> None:
    made = text(pl.pallas_call(_double, shaped()), shaped())
    assert "memref<1xf32, #tpu.memory_space<smem>>" in made
    assert "memref.store" in made


def test_bools_are_int32s_in_memory() -> None:
    made = elementwise(lambda x: ~x, shaped(8, 128, dtype="bool"))
    assert "memref<8x128xi32" in made


def test_scratch_and_prefetched_scalars() -> None:
    def kernel(places: Any, x: Any, o: Any, total: Any) -> None:
        total[...] = total[...] + x[...]
        o[...] = total[...]

    spec = pltpu.PrefetchScalarGridSpec(
        1, (4,), [pl.BlockSpec((8, 128), lambda i, places: (places[i], 0))],
        pl.BlockSpec((8, 128), lambda i, places: (0, 0)), [pltpu.VMEM((8, 128), "float32")],
    )  # fmt: skip
    made = text(pl.pallas_call(kernel, shaped(8, 128), grid_spec=spec), shaped(4, dtype="int32"), shaped(32, 128))
    assert "scalar_prefetch = 1 : i64" in made
    assert "scratch_operands = 1 : i64" in made
    assert "memref.load" in made


PARTS = {
    "a dynamic row": (lambda i, x: x[i[0]], shaped(256), "vector.load %arg2[%1, %c0]"),
    "a part": (lambda i, x: x[4:12], shaped(8, 256), "vector<8x256xf32>"),
    "each second row": (lambda i, x: x[::2], shaped(8, 256), "tpu.strided_load"),
    "one element": (lambda i, x: jnp.full((8, 128), x[1, 2]), shaped(8, 128), "vector.extract"),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts_of_refs(name: str) -> None:
    read, out, expected = PARTS[name]

    def kernel(i: Any, x: Any, o: Any) -> None:
        o[...] = read(i, x)

    specs = [pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec()]
    assert expected in text(pl.pallas_call(kernel, out, in_specs=specs), shaped(2, dtype="int32"), X)


def test_the_versioned_form_is_bytecode_of_its_own_dialect() -> None:
    made = serialized(module(pl.pallas_call(_double, X), X))
    assert made.startswith(b"ML\xefR")
    assert b"stable_mosaic" in made


BAD = {
    "a block": (
        lambda: text(
            pl.pallas_call(_double, shaped(100, 100), grid=10, in_specs=[TENTH], out_specs=TENTH), shaped(100, 100)
        ),
        r"the block \(10, 50\) of operand 0, .*float32\[100,100\].* nearest block that fits is \(8, 100\)",
    ),
    "an operation": (lambda: elementwise(jnp.sort, X), r"sort, at .*no form in a Mosaic kernel.*stablehlo\.sort"),
    "each second element of a value": (lambda: elementwise(lambda x: x[::2], X), r"ref\[start:stop:step\]"),
    "reverse three": (lambda: elementwise(lambda x: x[::-1], shaped(12, 128)), "power of two"),
    "a vector of SMEM": (
        lambda: text(pl.pallas_call(_double, X, in_specs=[pl.BlockSpec(memory_space=pltpu.SMEM)]), X),
        "SMEM holds scalars",
    ),
    "a value of an array that is not copied": (
        lambda: text(pl.pallas_call(_double, X, in_specs=[pl.BlockSpec(memory_space=pltpu.ANY)]), X),
        "'any', from which a program can only copy",
    ),
    "complex operands": (
        lambda: text(pl.pallas_call(_double, shaped(8, dtype="complex64")), shaped(8, dtype="complex64")),
        "operand 0 of _double is of dtype complex64",
    ),
    "complex values": (lambda: elementwise(lambda x: abs(xlamini.lax.complex(x, x)), X), "of complex, at .*dtype"),
    "a print": (lambda: elementwise(_printed, X), "debug_print, at .*has a side effect, debug, which a Mosaic kernel"),
    "a call of the host": (
        lambda: elementwise(lambda x: xlamini.pure_callback(abs, x, x), X),
        "pure_callback, at .*has no form in a Mosaic kernel: it needs the meshes of a whole program",
    ),
    "no elements": (
        lambda: xlamini.jit(pl.pallas_call(_double, shaped(0, 128))).trace(shaped(0, 128)).lower(
            lowering_platforms=("tpu",)
        ),
        r"_double: operand 0 is float32\[0,128\], without elements",
    ),
}  # fmt: skip
TENTH = pl.BlockSpec((10, 50), lambda i: (i, 0))


@pytest.mark.parametrize("name", BAD)
def test_errors_name_what_does_not_fit(name: str) -> None:
    make, message = BAD[name]
    with pytest.raises(KernelError, match=message):
        make()
