"""Right kernels under checks: their values are NumPy's, under transformations too; the interpreter's params."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from tests.support.checked_calls import ANY, F32, GPU, I32, TPU, call, copied_by, floats, ints, like, matmul, rows
from xlamini import lax
from xlamini.errors import KernelCheckError
from xlamini.experimental import pallas as pl
from xlamini.experimental.pallas import tpu as pltpu, triton as plgpu


class Right(NamedTuple):
    """A call of a right kernel, and the values that NumPy gives."""

    call: Callable[[], Any]
    values: Callable[[], Any]


def _rms_norm(params: Any) -> tuple[Any, np.ndarray, np.ndarray]:
    """Of rows of 100 in blocks of 128 columns; a mask leaves out those beyond the edge."""

    def kernel(x: Any, g: Any, o: Any) -> None:
        v = jnp.where(lax.broadcasted_iota(I32, (8, 128), 1) < 100, x[...], 0.0)
        o[...] = v * lax.rsqrt((v * v).sum(-1, keepdims=True) / 100 + 1e-6) * g[...]

    blocks, whole = pl.BlockSpec((8, 128), lambda i: (i, 0)), pl.BlockSpec((1, 128), lambda i: (0, 0))
    norm = call(kernel, like(30, 100), params, grid=4, in_specs=[blocks, whole], out_specs=blocks)
    return norm, floats(30, 100), floats(1, 100)


def _rms_norm_values() -> np.ndarray:
    x, g = floats(30, 100), floats(1, 100)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6) * g


def _softmax() -> Any:
    def kernel(x: Any, o: Any) -> None:
        v = x[...]
        e = jnp.exp(v - v.max(-1, keepdims=True))
        o[...] = e / e.sum(-1, keepdims=True)

    return call(kernel, like(6, 16), GPU, grid=2, in_specs=[rows(4, 16)], out_specs=rows(4, 16))(floats(6, 16))


def _softmax_values() -> np.ndarray:
    e = np.exp(floats(6, 16))
    return e / e.sum(-1, keepdims=True)


def _attention() -> Any:
    """Flash attention: each program goes over the keys in blocks of 8."""

    def kernel(q: Any, k: Any, v: Any, o: Any) -> None:
        queries = q[...]

        def step(i: int, state: Any) -> Any:
            most, norm, total = state
            part = pl.ds(8 * i, 8)
            scores = jnp.dot(queries, k[part, :].T)
            top = jnp.maximum(most, scores.max(-1, keepdims=True))
            weights, scale = jnp.exp(scores - top), jnp.exp(most - top)
            return top, norm * scale + weights.sum(-1, keepdims=True), total * scale + jnp.dot(weights, v[part, :])

        state = jnp.full((8, 1), -jnp.inf), jnp.zeros((8, 1)), jnp.zeros((8, 4))
        for i in range(2):
            state = step(i, state)
        o[...] = state[2] / state[1]

    whole = pl.BlockSpec((16, 4), lambda i: (0, 0))
    specs = [rows(8, 4), whole, whole]
    return call(kernel, like(16, 4), GPU, grid=2, in_specs=specs, out_specs=rows(8, 4))(*_queries())


def _queries() -> list[np.ndarray]:
    return [floats(16, 4) + i for i in range(3)]


def _attention_values() -> np.ndarray:
    q, k, v = _queries()
    scores = q @ k.T
    e = np.exp(scores - scores.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True) @ v


def _in_place() -> Any:
    def kernel(x: Any, y: Any, o: Any) -> None:
        o[...] = 2 * x[...] + y[...]

    blocks = [rows(4), rows(4)]
    double = call(kernel, like(8), GPU, grid=2, in_specs=blocks, out_specs=rows(4), input_output_aliases={0: 0})
    return double(floats(8), floats(8))


def _one_row_in_place() -> Any:
    """The rows that no program writes keep the operand's value."""

    def kernel(x: Any, o: Any) -> None:
        o[1] = x[1] + 1

    return call(kernel, like(4, 2), input_output_aliases={0: 0})(floats(4, 2))


def _sums() -> Any:
    """Of rows, in scratch memory that the first program starts and the last one hands over."""

    def kernel(x: Any, o: Any, total: Any) -> None:
        @pl.when(pl.program_id(0) == 0)
        def _() -> None:
            total[...] = jnp.zeros_like(total)

        total[...] += x[...].sum(0, keepdims=True)

        @pl.when(pl.program_id(0) == pl.num_programs(0) - 1)
        def _() -> None:
            o[...] = total[...]

    return call(kernel, like(1, 128), TPU, grid=4, in_specs=[rows(8, 128)], out_specs=pl.BlockSpec((1, 128)),
                scratch_shapes=[pltpu.VMEM((1, 128), F32)])(floats(32, 128))  # fmt: skip


_TABLE = np.int32([2, 0, 1])


def _permuted() -> Any:
    def kernel(table: Any, x: Any, o: Any) -> None:
        o[...] = x[...] + table[pl.program_id(0)]

    x_map = pl.BlockSpec((8, 128), lambda i, t: (t[i], 0))
    spec = pltpu.PrefetchScalarGridSpec(1, 3, [x_map], pl.BlockSpec((8, 128), lambda i, t: (i, 0)))
    return call(kernel, like(24, 128), TPU, grid_spec=spec)(_TABLE, floats(24, 128))


def _permuted_values() -> np.ndarray:
    return (floats(24, 128).reshape(3, 8, 128)[_TABLE] + _TABLE[:, None, None]).reshape(24, 128)


def _counts() -> Any:
    """How often each number is there, by integers alone, of 10 elements in blocks of 4."""

    def kernel(x: Any, o: Any) -> None:
        i = pl.program_id(0)
        place = 4 * i + lax.iota(I32, 4)
        hits = (x[...][:, None] == lax.iota(I32, 4)) & (place < 10)[:, None]
        o[...] = jnp.where(i == 0, 0, o[...]) + hits.sum(0, dtype=I32)

    return call(kernel, like(4, dtype=I32), grid=3, in_specs=[rows(4)], out_specs=pl.BlockSpec((4,)))(ints(10) % 4)


def _gathered() -> Any:
    def kernel(x: Any, i: Any, o: Any) -> None:
        o[...] = jnp.zeros_like(o)
        o[i[...]] = x[i[...], 1]

    return call(kernel, like(4), GPU)(floats(4, 2), np.int32([3, 0]))


def _gathered_values() -> np.ndarray:
    x = floats(4, 2)
    return np.float32([x[0, 1], 0, 0, x[3, 1]])


def _neighbours() -> Any:
    """Of element blocks with padding, whose values a mask leaves out."""

    def kernel(x: Any, o: Any) -> None:
        left = jnp.where((pl.program_id(0) == 0) & (lax.iota(I32, 4) == 0), 0.0, x[0:4])
        o[...] = left + x[1:5]

    spec = pl.BlockSpec((pl.Element(6, (1, 1)),), lambda i: 4 * i)
    return call(kernel, like(8), grid=2, in_specs=[spec], out_specs=rows(4))(floats(8))


def _padded_sum() -> Any:
    """Of vectors of 6, in pieces of 4, by loads and stores with a mask."""

    def kernel(x: Any, y: Any, o: Any) -> None:
        place = pl.ds(4 * pl.program_id(0), 4)
        mask = 4 * pl.program_id(0) + lax.iota(I32, 4) < 6
        total = plgpu.load(x.at[place], mask=mask) + plgpu.load(y.at[place], mask=mask, other=1.0)
        plgpu.store(o.at[place], total, mask=mask)

    return call(kernel, like(6), GPU, grid=2, in_specs=[_ALL, _ALL], out_specs=_ALL)(floats(6), floats(6))


_ALL = pl.BlockSpec(memory_space=pl.ANY)


def _histogram() -> Any:
    """Each program adds to any of the counts, by atomic updates."""

    def kernel(x: Any, start: Any, o: Any) -> None:
        plgpu.atomic_add(o, (x[pl.ds(4 * pl.program_id(0), 4)],), 1)

    counts = call(kernel, like(4, dtype=I32), GPU, grid=3, in_specs=[_ALL, _ALL], out_specs=_ALL,
                  input_output_aliases={1: 0})  # fmt: skip
    return counts(ints(12) % 3, np.zeros(4, I32))


def _dot_in_a_loop() -> Any:
    """A loop that reads parts of its operands and adds to scratch memory."""

    def kernel(x: Any, y: Any, o: Any, total: Any) -> None:
        total[...] = jnp.zeros_like(total)

        @pl.loop(0, 3)
        def _(i: Any) -> None:
            part = pl.ds(2 * i, 2)
            total[...] += (x[part] * y[part]).sum(keepdims=True)

        o[...] = total[...]

    return call(kernel, like(1), scratch_shapes=[pltpu.VMEM((1,), F32)])(floats(6), floats(6))


RIGHT = {
    "masked edge": Right(lambda: _rms_norm(TPU)[0](*_rms_norm(TPU)[1:]), _rms_norm_values),
    "product": Right(lambda: matmul((2, 1, 2), TPU, "ijk", 128), lambda: floats(256, 256) @ floats(256, 128)),
    "softmax": Right(_softmax, _softmax_values),
    "attention": Right(_attention, _attention_values),
    "alias": Right(_in_place, lambda: 3 * floats(8)),
    "part of an alias": Right(_one_row_in_place, lambda: floats(4, 2) + np.float32([[0], [1], [0], [0]])),
    "scratch": Right(_sums, lambda: floats(32, 128).sum(0, keepdims=True)),
    "prefetched scalars": Right(_permuted, _permuted_values),
    "integers": Right(_counts, lambda: np.bincount(np.arange(10) % 4)),
    "gather and scatter": Right(_gathered, _gathered_values),
    "masked accesses": Right(_padded_sum, lambda: 2 * floats(6)),
    "atomic updates": Right(_histogram, lambda: np.int32([4, 4, 4, 0])),
    "loop over refs": Right(_dot_in_a_loop, lambda: (floats(6) ** 2).sum(keepdims=True)),
    "padding": Right(_neighbours, lambda: floats(8) + np.concatenate([[0], floats(8)[:-1]])),
}


@pytest.mark.parametrize("name", RIGHT)
def test_right_kernel(name: str) -> None:
    np.testing.assert_allclose(RIGHT[name].call(), RIGHT[name].values(), rtol=1e-4, atol=1e-5)


def test_transformed() -> None:
    """The checked kernel has the values and derivatives of the scan, and its mistakes, under transformations too."""
    norm, x, g = _rms_norm(ANY)
    fast = _rms_norm(True)[0]
    np.testing.assert_allclose(xlamini.jit(norm)(x, g), norm(x, g), rtol=1e-6)
    stack = np.stack([x, 2 * x])
    batches = [xlamini.vmap(f, (0, None))(stack, g) for f in (norm, fast)]
    np.testing.assert_allclose(*batches, rtol=1e-5)
    slopes = [xlamini.value_and_grad(lambda x, f=f: (f(x, g) ** 3).sum())(x) for f in (norm, fast)]
    np.testing.assert_allclose(slopes[0][0], slopes[1][0], rtol=1e-5)
    np.testing.assert_allclose(slopes[0][1], slopes[1][1], rtol=1e-4, atol=1e-5)


def _mean(x: Any) -> Any:
    def kernel(x: Any, o: Any) -> None:
        o[...] = x[...] - x[...].mean(0)

    return call(kernel, like(6, 2), grid=2, in_specs=[rows(4, 2)], out_specs=rows(4, 2))(x)


@pytest.mark.parametrize(
    ("transformed", "program"),
    [
        (xlamini.jit(_mean), (1,)),
        (xlamini.jit(xlamini.value_and_grad(lambda x: _mean(x).sum())), (1,)),
        (lambda x: xlamini.vmap(_mean)(x[None]), (0, 1)),
        (xlamini.grad(lambda x: _mean(x).sum()), (1,)),
    ],
)
def test_mistake_under_transformations(transformed: Callable[..., Any], program: tuple[int, ...]) -> None:
    with pytest.raises(KernelCheckError, match="depends on x beyond the end of its array") as found:
        xlamini.block_until_ready(transformed(floats(6, 2)))
    assert found.value.program == program


# --- parameters


def test_order_of_programs() -> None:
    seen: list[tuple[int, ...]] = []
    params = pltpu.InterpretParams(
        detect_races=True, random_seed=3, grid_point_recorder=lambda ids, core: seen.append(tuple(map(int, ids)))
    )
    copied_by(rows(1), rows(1), 8, params=params)
    assert seen != sorted(seen)
    assert sorted(seen) == [(i,) for i in range(8)]


def test_memory_of_zeros() -> None:
    """Memory that nothing wrote is 0, and no mistake."""

    def kernel(x: Any, o: Any, total: Any) -> None:
        total[...] += x[...]
        o[0:2] = total[0:2]

    params = pltpu.InterpretParams(uninitialized_memory="zero")
    found = call(kernel, like(4), params, scratch_shapes=[pltpu.VMEM((4,), F32)])(np.ones(4, F32))
    np.testing.assert_array_equal(found, [1, 1, 0, 0])


def test_operations_of_floats_skipped() -> None:
    params = pltpu.InterpretParams(skip_floating_point_ops=True)
    found = call(lambda x, o: o.set(x[...] + 1, slice(None)), like(4), params)(floats(4))
    np.testing.assert_array_equal(found, np.full(4, np.inf))


def test_choices_of_params() -> None:
    with pytest.raises(ValueError, match="target must be None or 'tpu' or 'gpu', got 'cpu'"):
        pltpu.InterpretParams(target="cpu")


def test_other_runs_ignore_checks() -> None:
    def kernel(x: Any, o: Any) -> None:
        pl.debug_check(x[0] > 0, "the input is positive")
        o[...] = x[...]

    def run(x: Any) -> Any:
        return pl.pallas_call(kernel, like(2), interpret=True)(x)

    x = np.float32([-1, 2])
    np.testing.assert_array_equal(run(x), x)
    np.testing.assert_array_equal(xlamini.vmap(run)(x[None])[0], x)
    np.testing.assert_array_equal(xlamini.jit(xlamini.grad(lambda x: run(x).sum()))(x), [1, 1])
    with pytest.raises(TypeError, match="debug_check: the condition must be a bool, got float32"):
        pl.debug_check(np.float32(1.0), "a number")


def test_prints(capsys: pytest.CaptureFixture[str]) -> None:
    """Once a program, in the checking interpreter and in the scan."""

    def kernel(x: Any, o: Any) -> None:
        pl.debug_print("x is", x[0])
        pl.debug_print("program {}", pl.program_id(0))
        o[...] = x[...]

    for params in (ANY, True):
        run = call(kernel, like(2), params, grid=2, in_specs=[rows(1)], out_specs=rows(1))
        xlamini.block_until_ready(run(np.float32([3, 4])))
        xlamini.effects_barrier()
        assert capsys.readouterr().out.split("\n")[:-1] == ["x is 3.0", "program 0", "x is 4.0", "program 1"]
