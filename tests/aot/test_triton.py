"""Kernels that a GPU's compiler takes: operations by dtype, and whole kernels, compiled for GPUs not here."""
from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import pytest

import xlamini
import xlamini.numpy as jnp
from tests.aot.conftest import target_or_skip
from tests.aot.counts import compiled, shaped
from xlamini import lax
from xlamini.experimental import pallas as pl
from xlamini.experimental.pallas import triton as plt
from xlamini.lax import DotAlgorithmPreset as Preset
from xlamini.runtime.targets.topology import Target

FLOATS = ("float32", "bfloat16", "float16")
INTS = ("int32",)
ALL = (*FLOATS, *INTS)


class Family(NamedTuple):
    """Operations of so many 32x32 operands, by dtypes; all are in one kernel, which adds their results up."""

    operations: tuple[Callable[..., Any], ...]
    dtypes: tuple[str, ...]
    operands: int = 1


def _lax(names: str) -> tuple[Callable[..., Any], ...]:
    return tuple(getattr(lax, name) for name in names.split())


def _along_rows(*names: str) -> tuple[Callable[..., Any], ...]:
    return tuple(partial(getattr(jnp, name), axis=1, keepdims=True) for name in names)


_TRANSCENDENTAL = _lax(
    "exp exp2 log log2 log1p expm1 sin cos tan tanh sqrt rsqrt cbrt logistic erf erfc erf_inv lgamma asin acos atan "
    "sinh cosh asinh acosh atanh"
)
_DTYPES = "bool int8 int16 int32 uint8 uint16 uint32 float16 bfloat16 float32 float8_e4m3fn float8_e5m2".split()
FAMILIES = {
    "transcendental": Family((*_TRANSCENDENTAL, plt.approx_tanh), FLOATS),
    "rounding": Family((*_lax("floor ceil abs sign neg is_finite square"), jnp.round), FLOATS),
    "of two floats": Family(_lax("add sub mul div rem max min pow atan2 nextafter"), FLOATS, 2),
    "of two ints": Family(
        (
            *_lax("add sub mul div rem max min bitwise_and bitwise_or bitwise_xor shift_left shift_right_logical"),
            lax.shift_right_arithmetic, jnp.floor_divide, jnp.mod,
        ),
        ("int32", "uint32", "int8", "uint8", "int16"), 2,
    ),
    "bits": Family(_lax("bitwise_not population_count clz"), ("int32", "uint32", "int8")),
    "bools": Family((jnp.logical_and, jnp.logical_or, jnp.logical_xor, jnp.equal), ("bool",), 2),
    "comparisons": Family(
        (lambda x, y: jnp.where(x < y, x, y), lambda x, y: (x == y) | (x >= y), lambda x, y: jnp.clip(x, 0, 1)), ALL, 2
    ),
    "reductions": Family(_along_rows("sum", "max", "min", "prod", "argmax", "argmin", "any", "all", "mean"), ALL),
    "of all elements": Family((jnp.sum, jnp.max, lambda x: jnp.sqrt((x * x).sum())), FLOATS),
    "running": Family(
        (partial(jnp.cumsum, axis=1), partial(lax.cummax, axis=0), partial(lax.cumprod, axis=1, reverse=True)), ALL
    ),
    "shapes": Family(
        (
            jnp.transpose,
            lambda x: x.reshape(4, 8, 32).swapaxes(1, 2).reshape(32, 32),
            lambda x: x[:, None].sum(1),
            lambda x: jnp.tile(x[:, 16:], (1, 2)),
            lambda x: jnp.repeat(x[:, 1::2], 2, 1),
            lambda x: jnp.concatenate([x[:16], x[16:]]),
            lambda x: x[3] + lax.broadcasted_iota(x.dtype, (32, 32), 1),
            lambda x: x.at[2].set(1),
        ),
        ALL,
    ),
    "conversions": Family(
        tuple(lambda x, to=to: x.astype(to).astype("float32") for to in _DTYPES),
        (*ALL, "bool", "uint8", "int8", "float8_e4m3fn", "float8_e5m2"),
    ),
    "rounded": Family((partial(lax.reduce_precision, exponent_bits=8, mantissa_bits=7),), ("float32",)),
    "same bits": Family((lambda x: lax.bitcast_convert_type(x, "float32"),), ("int32",)),
    "products": Family(
        (
            jnp.matmul, lambda x, y: x @ y.T, lambda x, y: x.T @ y, plt.dot,
            lambda x, y: jnp.stack([x, y]) @ jnp.stack([y, x]),
        ),
        FLOATS, 2,
    ),
    "products of bytes": Family((plt.dot,), ("int8", "float8_e4m3fn", "float8_e5m2"), 2),
    "precisions": Family(
        (
            partial(jnp.matmul, precision="highest"),
            partial(jnp.matmul, precision="high"),
            partial(plt.dot, allow_tf32=True),
            *(partial(jnp.matmul, precision=p) for p in (Preset.BF16_BF16_F32, Preset.BF16_BF16_F32_X3)),
            *(partial(jnp.matmul, precision=p) for p in (Preset.TF32_TF32_F32_X3, Preset.F32_F32_F32)),
        ),
        ("float32",), 2,
    ),
    "control flow": Family(
        (
            lambda x: lax.fori_loop(0, 3, lambda i, y: y * 2 + i.astype(y.dtype), x),
            lambda x: lax.while_loop(lambda y: y.sum() < 100, lambda y: y * 2, x),
            lambda x: lax.cond(x.sum() > 0, lambda y: y * 2, lambda y: y - 1, x),
            lambda x: lax.switch(x.sum().astype("int32") % 3, [lambda y: y * 2, lambda y: y, lambda y: y + 1], x),
            lambda x: lax.scan(lambda c, row: (c + row, c * row), x[0], x)[1],
        ),
        ALL,
    ),
    "activations": Family((xlamini.nn.softmax, xlamini.nn.gelu, xlamini.nn.silu, xlamini.nn.logsumexp), FLOATS),
}  # fmt: skip


def _sum_of(family: Family, *refs: Any) -> None:
    *operands, out = refs
    values = [ref[...] for ref in operands]
    total = jnp.zeros((32, 32), "float32")
    for operation in family.operations:
        found = operation(*values)
        found = found.sum(0) if found.ndim == 3 else found
        total += found.astype("float32").reshape(-1, 1) if found.shape == (32,) else found.astype("float32")
    out[...] = total


_CASES = [(name, dtype) for name, family in FAMILIES.items() for dtype in family.dtypes]


@pytest.mark.parametrize(("name", "dtype"), _CASES, ids=[f"{n}-{d}" for n, d in _CASES])
def test_operations_compile(gpu: Target, name: str, dtype: str) -> None:
    family = FAMILIES[name]
    call = pl.pallas_call(partial(_sum_of, family), shaped(32, 32), name=name.replace(" ", "_"))
    _check_kernel(call, gpu, [shaped(32, 32, dtype=dtype)] * family.operands)


def _check_kernel(call: Any, target: Target, args: Any) -> str:
    text = compiled(call, target, *args).as_text()
    assert "__gpu$xla.gpu.triton" in text or "triton" in text
    return text


# --- whole kernels


def _rows(size: int, width: int) -> pl.BlockSpec:
    return pl.BlockSpec((size, width), lambda i: (i, 0))


def _rms_norm(x: Any, g: Any, o: Any) -> None:
    v = x[...].astype("float32")
    o[...] = (v * lax.rsqrt((v * v).mean(-1, keepdims=True) + 1e-6) * g[...]).astype(o.dtype)


def _layer_norm(x: Any, o: Any) -> None:
    v = x[...].astype("float32")
    v -= v.mean(-1, keepdims=True)
    o[...] = (v * lax.rsqrt((v * v).mean(-1, keepdims=True) + 1e-6)).astype(o.dtype)


def _softmax(x: Any, o: Any) -> None:
    o[...] = xlamini.nn.softmax(x[...], -1)


def _row_softmax(x: Any, o: Any) -> None:
    i, columns = pl.program_id(0), jnp.arange(1024)
    inside = columns < 1000
    v = plt.load(x.at[i, columns], mask=inside, other=-jnp.inf)
    e = jnp.exp(v - v.max())
    plt.store(o.at[i, columns], e / e.sum(), mask=inside)


def _copy(x: Any, o: Any) -> None:
    o[...] = x[...]


def _matmul(x: Any, y: Any, o: Any) -> None:
    def step(i: Any, total: Any) -> Any:
        part = pl.ds(i * 32, 32)
        return total + jnp.dot(x[:, part], y[part, :], preferred_element_type="float32")

    o[...] = lax.fori_loop(0, 8, step, jnp.zeros((64, 64), "float32")).astype(o.dtype)


def _attention(q: Any, k: Any, v: Any, o: Any) -> None:
    rows, width = q.shape

    def step(i: Any, carry: Any) -> Any:
        most, below, total = carry
        part = pl.ds(i * 64, 64)
        s = jnp.dot(q[...], k[part, :].T, preferred_element_type="float32") * width**-0.5
        new = jnp.maximum(most, s.max(1))
        p, old = jnp.exp(s - new[:, None]), jnp.exp(most - new)
        values = v[part, :]
        weighted = jnp.dot(p.astype(values.dtype), values, preferred_element_type="float32")
        return new, below * old + p.sum(1), total * old[:, None] + weighted

    start = jnp.full(rows, -1e30), jnp.zeros(rows), jnp.zeros((rows, width))
    _, below, total = lax.fori_loop(0, k.shape[0] // 64, step, start)
    o[...] = (total / below[:, None]).astype(o.dtype)


def _histogram(x: Any, zeros: Any, o: Any) -> None:
    plt.atomic_add(o, x[...], 1)


def _atomics(x: Any, o: Any, old: Any) -> None:
    everywhere, some = x[...], jnp.arange(16) < 12
    old[...] = plt.atomic_max(o, ..., everywhere) + plt.atomic_min(o, jnp.arange(16), everywhere, mask=some)
    plt.atomic_xchg(o, pl.program_id(0), everywhere[0])
    plt.atomic_cas(o.at[3], 0, 7)
    plt.debug_barrier()


def _bit_atomics(x: Any, o: Any, old: Any) -> None:
    bits = x[...]
    old[...] = plt.atomic_and(o, ..., bits) | plt.atomic_or(o, ..., bits) ^ plt.atomic_xor(o, ..., bits)


def _gather(x: Any, i: Any, o: Any) -> None:
    o[...] = x[i[...]]


def _hinted(x: Any, o: Any) -> None:
    start = pl.multiple_of(pl.program_id(0) * 16, 16)
    o[...] = x[plt.max_contiguous(start + jnp.arange(16), 16)]


def _strided(x: Any, o: Any) -> None:
    o[...] = x[pl.ds(0, 16, 2), 3, ::4]


def _prefetched(order: Any, x: Any, o: Any) -> None:
    o[...] = x[...] * order[pl.program_id(0)].astype(x.dtype)


def _accumulated(x: Any, start: Any, o: Any) -> None:
    o[...] += x[...]


class Call(NamedTuple):
    """A kernel, its operands, its result, and how it is called."""

    kernel: Callable[..., None]
    args: tuple[Any, ...]
    out: Any
    options: dict[str, Any]


_ATTENTION = {
    "grid": (2, 4),
    "in_specs": [
        pl.BlockSpec((64, 64), lambda h, i: (h * 4 + i, 0)),
        *[pl.BlockSpec((256, 64), lambda h, i: (h, 0))] * 2,
    ],
    "out_specs": pl.BlockSpec((64, 64), lambda h, i: (h * 4 + i, 0)),
}
_PREFETCH = pl.tpu.PrefetchScalarGridSpec(
    num_scalar_prefetch=1, grid=(4,), in_specs=[pl.BlockSpec((8, 128), lambda i, order: (order[i], 0))],
    out_specs=pl.BlockSpec((8, 128), lambda i, order: (i, 0)),
)  # fmt: skip


def _norm(kernel: Any, dtype: str, scale: bool = False) -> Call:
    x = shaped(64, 1024, dtype=dtype)
    specs = [_rows(8, 1024), *[pl.BlockSpec((1, 1024), lambda i: (0, 0))] * scale]
    args = (x, *[shaped(1, 1024)] * scale)
    return Call(kernel, args, x, {"grid": 8, "in_specs": specs, "out_specs": _rows(8, 1024)})


def _product(dtype: str, **options: Any) -> Call:
    specs = [pl.BlockSpec((64, 256), lambda i, j: (i, 0)), pl.BlockSpec((256, 64), lambda i, j: (0, j))]
    x = shaped(256, 256, dtype=dtype)
    out = pl.BlockSpec((64, 64), lambda i, j: (i, j))
    return Call(_matmul, (x, x), x, {"grid": (4, 4), "in_specs": specs, "out_specs": out, **options})


def _copied(shape: Any, block: Any, grid: Any, index_map: Any, dtype: str = "float32") -> Call:
    spec = pl.BlockSpec(block, index_map)
    x = shaped(*shape, dtype=dtype)
    return Call(_copy, (x,), x, {"grid": grid, "in_specs": [spec], "out_specs": spec})


_EACH = (lambda *ids: ids)
KERNELS = {
    **{f"rms norm {d}": _norm(_rms_norm, d, True) for d in FLOATS},
    **{f"layer norm {d}": _norm(_layer_norm, d) for d in FLOATS},
    **{f"softmax {d}": _norm(_softmax, d) for d in FLOATS},
    "softmax of masked rows": Call(_row_softmax, (shaped(8, 1000),), shaped(8, 1000), {"grid": 8}),
    **{f"matmul {d}": _product(d) for d in FLOATS},
    "matmul of 8 warps": _product("bfloat16", compiler_params=plt.CompilerParams(num_warps=8, num_stages=4)),
    **{f"attention {d}": Call(_attention, (shaped(512, 64, dtype=d),) * 3, shaped(512, 64, dtype=d), _ATTENTION)
       for d in FLOATS},
    "histogram": Call(_histogram, (shaped(64, dtype="int32"), shaped(10, dtype="int32")), shaped(10, dtype="int32"), {
        "grid": 4, "in_specs": [pl.BlockSpec((16,), lambda i: (i,)), None], "input_output_aliases": {1: 0}}),
    **{f"atomics {d}": Call(_atomics, (shaped(16, dtype=d),), (shaped(16, dtype=d),) * 2, {"grid": 2})
       for d in ("float32", "int32", "uint32")},
    "atomics of bits": Call(_bit_atomics, (shaped(16, dtype="int32"),), (shaped(16, dtype="int32"),) * 2, {}),
    **{f"ragged edges {d}": _copied((30, 100), (8, 64), (4, 2), _EACH, d) for d in (*ALL, "bool")},
    "a vector's edge": _copied((1000,), (256,), 4, _EACH),
    "a block of more than the array": _copied((30, 5), (32, 8), (), lambda: (0, 0)),
    "four axes": _copied((2, 3, 8, 16), (None, None, 4, 8), (2, 3, 2, 2), _EACH),
    "a long second axis": _copied((2, 70000), (1, 1), (2, 70000), _EACH),
    "elements with padding": _copied((16,), (pl.Element(16, (1, 2)),), 2, lambda i: (i - 1,)),
    "prefetched scalars": Call(
        _prefetched, (shaped(4, dtype="int32"), shaped(32, 128)), shaped(32, 128), {"grid_spec": _PREFETCH}),
    "aliases": Call(_accumulated, (shaped(64), shaped(64)), shaped(64), {"input_output_aliases": {1: 0}}),
    "a gather": Call(_gather, (shaped(100), shaped(16, dtype="int32")), shaped(16), {}),
    "a gather of bytes": Call(
        _gather, (shaped(100, dtype="bool"), shaped(4, 16, dtype="int8")), shaped(4, 16, dtype="bool"), {}),
    "hints": Call(_hinted, (shaped(64),), shaped(64), {"grid": 4, "out_specs": pl.BlockSpec((16,), lambda i: (i,))}),
    "strides": Call(_strided, (shaped(32, 5, 32),), shaped(16, 8), {}),
    "more than 2**31 elements": _copied((2**17, 2**15), (8, 1024), (2**14, 32), _EACH, "int8"),
}  # fmt: skip


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_compile(gpu: Target, name: str) -> None:
    _check_call(KERNELS[name], gpu)


@pytest.mark.parametrize(
    "name", ["rms norm bfloat16", "matmul bfloat16", "matmul float32", "attention float16", "aliases"]
)
@pytest.mark.parametrize("spec", ["gpu:a100", "gpu:b200"])
def test_kernels_compile_for_other_gpus(spec: str, name: str) -> None:
    _check_call(KERNELS[name], target_or_skip(spec))


def _check_call(row: Call, target: Target) -> None:
    call = pl.pallas_call(row.kernel, row.out, **row.options)
    _check_kernel(call, target, row.args)


def test_an_alias_is_the_memory_of_the_operand(gpu: Target) -> None:
    row = KERNELS["aliases"]
    call = pl.pallas_call(row.kernel, row.out, **row.options)
    stats = (
        xlamini.jit(call, donate_argnums=1).trace(*row.args).lower(target=gpu).compile().memory_analysis()
    )
    assert stats.alias_size_in_bytes == 256


def test_no_program_runs_for_an_empty_grid(gpu: Target) -> None:
    row = _copied((16,), (16,), 0, _EACH)
    assert "triton" not in compiled(pl.pallas_call(row.kernel, row.out, **row.options), gpu, *row.args).as_text()


def test_mapped_kernels_have_one_more_axis(gpu: Target) -> None:
    row = KERNELS["ragged edges float32"]
    call = xlamini.vmap(pl.pallas_call(row.kernel, row.out, **row.options))
    _check_kernel(call, gpu, [shaped(3, 30, 100)])
