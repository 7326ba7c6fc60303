"""Kernels compiled by a TPU's own compiler: each family of operations in each dtype, parts of refs, whole kernels."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from tests.aot.conftest import target_or_skip
from tests.aot.counts import compiled, shaped
from xlamini import lax
from xlamini.experimental import pallas as pl
from xlamini.experimental.pallas import tpu as pltpu
from xlamini.runtime.targets.topology import Target

FLOATS = ("float32", "bfloat16")
WORDS = (*FLOATS, "int32")
EVERY = (*WORDS, "uint32", "int16", "int8", "uint8")
SHAPE = (16, 256)


@pytest.fixture(params=["tpu:v5e:2x2", "tpu:v6e:2x2"])
def chip(request: pytest.FixtureRequest) -> Target:
    """An old TPU, without bfloat16 in its vector unit, and a new one."""
    return target_or_skip(request.param)


def whole(fun: Callable[..., Any], *args: Any) -> Callable[..., Any]:
    """The kernel that applies a function to the whole of its operands."""

    def kernel(*refs: Any) -> None:
        *ins, out = refs
        out[...] = fun(*(ref[...] for ref in ins))

    return pl.pallas_call(kernel, xlamini.eval_shape(fun, *args))


def compile_whole(fun: Callable[..., Any], chip: Target, *args: Any) -> None:
    text = compiled(whole(fun, *args), chip, *args).as_text()
    assert 'custom_call_target="tpu_custom_call"' in text


def number(x: Any) -> Any:
    """The first element as an int32."""
    return x[0, 0].astype("int32")


UNARY: dict[str, tuple[Callable[[Any], Any], tuple[str, ...]]] = {
    **{
        name: (getattr(lax, name), FLOATS)
        for name in (
            "exp", "expm1", "log", "log1p", "sin", "cos", "tan", "tanh", "sqrt", "rsqrt", "floor", "ceil", "logistic",
            "erf", "erfc", "is_finite",
        )
    },
    "round": (jnp.round, FLOATS),
    "abs": (jnp.abs, (*WORDS, "int8")),
    "neg": (lambda x: -x, (*WORDS, "int8")),
    "sign": (jnp.sign, WORDS),
    "not": (lambda x: ~x, ("int32", "bool")),
    "popcount": (lax.population_count, ("int32",)),
    "clz": (lax.clz, ("int32",)),
    "power": (lambda x: x**3, WORDS),
    "clip": (lambda x: jnp.clip(x, 0, 1), WORDS),
    "softmax": (lambda x: xlamini.nn.softmax(x, -1), FLOATS),
    "gelu": (xlamini.nn.gelu, FLOATS),
    "to bfloat16": (lambda x: x.astype("bfloat16"), EVERY),
    "to float32": (lambda x: x.astype("float32"), (*EVERY, "bool", "float8_e4m3fn")),
    "to int32": (lambda x: x.astype("int32"), (*EVERY, "bool")),
    "to int8": (lambda x: x.astype("int8"), EVERY),
    "to uint32": (lambda x: x.astype("uint32"), EVERY),
    "to bool": (lambda x: x.astype("bool"), EVERY),
    "bits": (lambda x: lax.bitcast_convert_type(x, "int32"), ("float32",)),
    "sum": (lambda x: x.sum(1), WORDS),
    "sum of rows": (lambda x: x.sum(0, keepdims=True), WORDS),
    "sum of all": (lambda x: x * x.sum().astype(x.dtype), WORDS),
    "max": (lambda x: x.max(1, keepdims=True), (*WORDS, "uint32", "int8")),
    "min": (lambda x: x.min(0, keepdims=True), WORDS),
    "prod": (lambda x: x.prod(1, keepdims=True), ("float32", "int32")),
    "all": (lambda x: (x > 0).all(1, keepdims=True), WORDS),
    "any": (lambda x: jnp.where((x > 0).any(), x, 0), ("float32",)),
    "argmax": (lambda x: jnp.argmax(x, 1), WORDS),
    "argmin": (lambda x: jnp.argmin(x, 0, keepdims=True), WORDS),
    "cumsum": (lambda x: jnp.cumsum(x, 1), WORDS),
    "cummax": (lambda x: lax.cummax(x, 0, reverse=True), ("float32",)),
    "reverse": (lambda x: x[::-1], WORDS),
    "transpose": (lambda x: x.T, EVERY),
    "split": (lambda x: x.reshape(2, 8, 256), FLOATS),
    "outer": (lambda x: jnp.broadcast_to(x[:, :1], SHAPE), EVERY),
    "rows": (lambda x: jnp.broadcast_to(x[:1], SHAPE), EVERY),
    "iota": (lambda x: x + jnp.arange(256).astype(x.dtype), WORDS),
    "part": (lambda x: x[4:12, 64:192], WORDS),
    "moving part": (lambda x: lax.dynamic_slice(x, (number(x), 0), (8, 256)), WORDS),
    "moving lanes": (lambda x: lax.dynamic_slice(x, (0, number(x)), (16, 128)), ("float32",)),
    "part changed": (lambda x: lax.dynamic_update_slice(x, x[:8], (number(x), 0)), FLOATS),
    "pad": (lambda x: jnp.pad(x, ((2, 6), (64, 64))), WORDS),
    "concatenate": (lambda x: jnp.concatenate([x, x], 1), EVERY),
    "stack": (lambda x: jnp.stack([x, x]), FLOATS),
    "roll": (lambda x: jnp.roll(x, 3, 1), WORDS),
    "fori_loop": (lambda x: lax.fori_loop(0, 4, lambda i, c: c + i.astype(c.dtype), x), WORDS),
    "dynamic fori_loop": (lambda x: lax.fori_loop(0, number(x), lambda i, c: 2 * c, x), ("float32",)),
    "while_loop": (lambda x: lax.while_loop(lambda c: c[0, 0] < 4, lambda c: c * 2 + 1, x), FLOATS),
    "cond": (lambda x: lax.cond(x[0, 0] > 0, lambda x: x * 2, lambda x: x - 1, x), WORDS),
    "switch": (lambda x: lax.switch(number(x), [lambda x: x, lambda x: -x, lambda x: x + 1], x), ("float32",)),
}

BINARY: dict[str, tuple[Callable[[Any, Any], Any], tuple[str, ...]]] = {
    "add": (lax.add, EVERY),
    "mul": (lax.mul, EVERY),
    "max": (lax.max, EVERY),
    "div": (lax.div, (*WORDS, "uint32")),
    "rem": (lax.rem, (*WORDS, "uint32")),
    "pow": (lax.pow, FLOATS),
    "atan2": (lax.atan2, FLOATS),
    "and": (lax.bitwise_and, ("int32", "bool", "int8")),
    "xor": (lax.bitwise_xor, ("int32", "bool")),
    "shift": (lax.shift_right_logical, ("int32", "uint32")),
    "where": (lambda x, y: jnp.where(x > y, x, y), EVERY),
    "unequal": (lambda x, y: x != y, WORDS),
}

ROWS = [(name, fun, [dtype]) for name, (fun, dtypes) in UNARY.items() for dtype in dtypes]
ROWS += [(name, fun, [dtype] * 2) for name, (fun, dtypes) in BINARY.items() for dtype in dtypes]


@pytest.mark.parametrize(("name", "fun", "dtypes"), ROWS, ids=lambda x: x if isinstance(x, str) else None)
def test_operations(name: str, fun: Callable[..., Any], dtypes: list[str], tpu: Target) -> None:
    compile_whole(fun, tpu, *(shaped(*SHAPE, dtype=dtype) for dtype in dtypes))


NEW = ["add", "max", "exp", "sum", "argmax", "transpose", "where", "to int8", "moving part", "cond"]


@pytest.mark.parametrize(("name", "fun", "dtypes"), [row for row in ROWS if row[0] in NEW])
def test_operations_on_a_new_chip(name: str, fun: Callable[..., Any], dtypes: list[str]) -> None:
    chip = target_or_skip("tpu:v6e:2x2")
    compile_whole(fun, chip, *(shaped(*SHAPE, dtype=dtype) for dtype in dtypes))


PRODUCTS = {
    "ij,jk->ik": ((128, 256), (256, 128)),
    "ij,kj->ik": ((128, 256), (128, 256)),
    "ji,jk->ik": ((256, 128), (256, 128)),
    "ji,kj->ik": ((256, 128), (128, 256)),
    "bij,bjk->bik": ((4, 128, 256), (4, 256, 128)),
    "bij,bkj->bik": ((4, 128, 256), (4, 128, 256)),
    "bij,jk->bik": ((4, 8, 128), (128, 128)),
    "ij,j->i": ((128, 256), (256,)),
    "j,jk->k": ((256,), (256, 128)),
}


@pytest.mark.parametrize("dtype", [*FLOATS, "int8"])
@pytest.mark.parametrize("subscripts", PRODUCTS)
def test_products(subscripts: str, dtype: str, chip: Target) -> None:
    if dtype == "int8" and subscripts == "ij,j->i":
        pytest.skip("the unit for matrices takes no vectors")
    wide = "int32" if dtype == "int8" else "float32"
    args = [shaped(*shape, dtype=dtype) for shape in PRODUCTS[subscripts]]
    compile_whole(lambda x, y: jnp.einsum(subscripts, x, y, preferred_element_type=wide), chip, *args)


@pytest.mark.parametrize("precision", ["default", "highest"])
def test_precision(precision: str, tpu: Target) -> None:
    x = shaped(128, 128)
    compile_whole(lambda x, y: jnp.dot(x, y, precision=precision), tpu, x, x)


# --- parts of refs


def compile_kernel(kernel: Any, tpu: Target, out: Any, *args: Any, **options: Any) -> str:
    return compiled(pl.pallas_call(kernel, out, **options), tpu, *args).as_text()


def _swap_halves(i: Any, x: Any, o: Any) -> None:
    o[0:8] = x[8:16]
    o[8:16] = x[0:8]


def _one_row(i: Any, x: Any, o: Any) -> None:
    o[...] = x[...]
    o[i[0]] = x[i[1]]


def _one_element(i: Any, x: Any, o: Any) -> None:
    o[...] = x[...]
    o[3, 5] = x[4, 6] * 2


PARTS = {"halves": _swap_halves, "a row": _one_row, "an element": _one_element}


@pytest.mark.parametrize("name", PARTS)
def test_parts(name: str, tpu: Target) -> None:
    x, specs = shaped(*SHAPE), [pl.BlockSpec(memory_space=pltpu.SMEM), pl.BlockSpec()]
    compile_kernel(PARTS[name], tpu, x, shaped(2, dtype="int32"), x, in_specs=specs)


def _double(x: Any, o: Any) -> None:
    o[...] = 2 * x[...]


LINES = pl.BlockSpec((8, 128), lambda i: (i, 0))
BLOCKS = {
    "whole": ((5, 100), (), None),
    "a scalar": ((), (), None),
    "one dimension": ((1024,), (8,), pl.BlockSpec((128,), lambda i: (i,))),
    "a ragged edge": ((30, 128), (4,), LINES),
    "a squeezed dimension": ((4, 16, 128), (4, 2), pl.BlockSpec((None, 8, 128), lambda i, j: (i, j, 0))),
    "elements": ((16, 128), (2,), pl.BlockSpec((pl.Element(8), pl.Element(128)), lambda i: (i * 8, 0))),
    "one buffer": ((32, 128), (4,), pl.BlockSpec((8, 128), lambda i: (i, 0), pipeline_mode=pl.Buffered(1))),
}


@pytest.mark.parametrize("name", BLOCKS)
def test_blocks(name: str, tpu: Target) -> None:
    shape, grid, spec = BLOCKS[name]
    specs = {} if spec is None else {"in_specs": [spec], "out_specs": spec}
    compile_kernel(_double, tpu, shaped(*shape), shaped(*shape), grid=grid, **specs)


def test_batches(tpu: Target) -> None:
    call = pl.pallas_call(_double, shaped(32, 128), grid=4, in_specs=[LINES], out_specs=LINES)
    assert "tpu_custom_call" in compiled(xlamini.vmap(call), tpu, shaped(3, 32, 128)).as_text()


def test_aliases(tpu: Target) -> None:
    call = pl.pallas_call(_double, shaped(8, 128), input_output_aliases={0: 0})
    assert "output_to_operand_aliasing={{}: (0, {})}" in compiled(call, tpu, shaped(8, 128)).as_text()


def test_prefetched_scalars(tpu: Target) -> None:
    def kernel(places: Any, x: Any, o: Any) -> None:
        o[...] = x[...] * places[0].astype("float32")

    chosen, lines = (
        pl.BlockSpec((8, 128), at) for at in (lambda i, places: (places[i], 0), lambda i, places: (i, 0))
    )
    spec = pltpu.PrefetchScalarGridSpec(1, (4,), [chosen], lines)
    compile_kernel(kernel, tpu, shaped(32, 128), shaped(4, dtype="int32"), shaped(32, 128), grid_spec=spec)


def test_a_block_beyond_memory_is_an_error_of_the_compiler(tpu: Target) -> None:
    with pytest.raises(RuntimeError, match="RESOURCE_EXHAUSTED"):
        compile_kernel(_double, tpu, shaped(8192, 8192), shaped(8192, 8192))


# --- kernels


def _layer_norm(x: Any, g: Any, b: Any, o: Any) -> None:
    v = x[...].astype("float32")
    centred = v - v.mean(-1, keepdims=True)
    scale = lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-6)
    o[...] = (centred * scale * g[...] + b[...]).astype(o.dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_layer_norm(dtype: str, chip: Target) -> None:
    lines, line = pl.BlockSpec((8, 1024), lambda i: (i, 0)), pl.BlockSpec((1, 1024), lambda i: (0, 0))
    x, row = shaped(512, 1024, dtype=dtype), shaped(1, 1024)
    compile_kernel(_layer_norm, chip, x, x, row, row, grid=64, in_specs=[lines, line, line], out_specs=lines)


def _matmul(x: Any, y: Any, o: Any, total: Any) -> None:
    total[...] = jnp.where(pl.program_id(2) == 0, 0, total[...])
    total[...] += jnp.dot(x[...], y[...], preferred_element_type=total.dtype)
    o[...] = total[...].astype(o.dtype)


@pytest.mark.parametrize(("dtype", "wide"), [("float32", "float32"), ("bfloat16", "float32"), ("int8", "int32")])
def test_matmul_over_three_axes(dtype: str, wide: str, chip: Target) -> None:
    specs = [pl.BlockSpec((128, 256), lambda i, j, k: (i, k)), pl.BlockSpec((256, 256), lambda i, j, k: (k, j))]
    compile_kernel(
        _matmul, chip, shaped(1024, 1024, dtype=wide), *[shaped(1024, 1024, dtype=dtype)] * 2,
        grid=(8, 4, 4), in_specs=specs, out_specs=pl.BlockSpec((128, 256), lambda i, j, k: (i, j)),
        scratch_shapes=[pltpu.VMEM((128, 256), wide)],
    )  # fmt: skip


def _attention(keys: int, width: int, rows: int, columns: int) -> Any:
    def kernel(q_ref: Any, k_ref: Any, v_ref: Any, o_ref: Any) -> None:
        q = q_ref[...]

        def step(i: Any, carry: Any) -> Any:
            most, weight, total = carry
            k, v = (ref[pl.ds(i * columns, columns), :] for ref in (k_ref, v_ref))
            s = jnp.einsum("qd,kd->qk", q, k, preferred_element_type="float32") * np.float32(width**-0.5)
            new = jnp.maximum(most, s.max(1))
            p, less = jnp.exp(s - new[:, None]), jnp.exp(most - new)
            product = jnp.dot(p.astype(v.dtype), v, preferred_element_type="float32")
            return new, weight * less + p.sum(1), total * less[:, None] + product

        start = jnp.full(rows, -1e30, "float32"), jnp.zeros(rows), jnp.zeros((rows, width))
        _, weight, total = lax.fori_loop(0, keys // columns, step, start)
        o_ref[...] = (total / weight[:, None]).astype(o_ref.dtype)

    return kernel


@pytest.mark.parametrize("dtype", FLOATS)
def test_flash_attention(dtype: str, chip: Target) -> None:
    x = shaped(2 * 1024, 128, dtype=dtype)
    queries = pl.BlockSpec((128, 128), lambda head, i: (head * 8 + i, 0))
    keys = pl.BlockSpec((1024, 128), lambda head, i: (head, 0))
    compile_kernel(
        _attention(1024, 128, 128, 128), chip, x, x, x, x,
        grid=(2, 8), in_specs=[queries, keys, keys], out_specs=queries,
    )  # fmt: skip
