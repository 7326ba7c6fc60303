"""Copies between memories and semaphores in kernels: what they mean, and that a TPU's compiler takes them."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
import xlamini.numpy as jnp
from xlamini import lax
from xlamini.experimental import pallas as pl
from xlamini.experimental.pallas import tpu as pltpu

ANYWHERE = pl.BlockSpec(memory_space=pltpu.ANY)


def shaped(*shape: int) -> Any:
    return xlamini.ShapeDtypeStruct(shape, "float32")


def _one_copy(x: Any, o: Any, buffer: Any, sem: Any) -> None:
    copy = pltpu.make_async_copy(x.at[pl.ds(8 * pl.program_id(0), 8)], buffer, sem)
    copy.start()
    copy.wait()
    o[...] = buffer[...] * 2


def _two_copies(x: Any, o: Any, buffers: Any, sems: Any, count: Any) -> None:
    copies = [pltpu.async_copy(x.at[pl.ds(8 * i, 8)], buffers.at[i], sems.at[i]) for i in range(2)]
    pltpu.semaphore_signal(count, 2)
    pltpu.semaphore_wait(count)
    for copy in copies:
        copy.wait()
    o[...] = (buffers[0] + buffers[1]) * pltpu.semaphore_read(count).astype("float32")
    pltpu.semaphore_wait(count)


def _sync_copy(x: Any, o: Any) -> None:
    pltpu.sync_copy(x, o)


def _pipeline(x: Any, o: Any, buffers: Any, sems: Any) -> None:
    def block(i: Any) -> Any:
        return pltpu.make_async_copy(x.at[pl.ds(8 * i, 8)], buffers.at[i % 2], sems.at[i % 2])

    def step(i: Any, carry: Any) -> Any:
        pl.when(i + 1 < 4)(lambda: block(i + 1).start())
        block(i).wait()
        o[pl.ds(8 * i, 8)] = buffers[i % 2] * 2
        return carry

    block(0).start()
    lax.fori_loop(0, 4, step, 0)


DMA, PAIR = pltpu.SemaphoreType.DMA, pltpu.VMEM((2, 8, 128), "float32")
TWO = DMA((2,))

KERNELS: dict[str, tuple[Any, int, Callable[[Any], Any]]] = {
    "one for each program": (
        pl.pallas_call(
            _one_copy, shaped(32, 128), grid=4, in_specs=[ANYWHERE], out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0)),
            scratch_shapes=[pltpu.VMEM((8, 128), "float32"), DMA],
        ),
        32, lambda x: 2 * x,
    ),
    "two, and a count": (
        pl.pallas_call(
            _two_copies, shaped(8, 128), in_specs=[ANYWHERE],
            scratch_shapes=[PAIR, TWO, pltpu.SemaphoreType.REGULAR],
        ),
        16, lambda x: x[:8] + x[8:],
    ),
    "of the whole array": (
        pl.pallas_call(_sync_copy, shaped(16, 128), in_specs=[ANYWHERE], out_specs=ANYWHERE), 16, lambda x: x,
    ),
    "in a pipeline": (
        pl.pallas_call(_pipeline, shaped(32, 128), in_specs=[ANYWHERE], scratch_shapes=[PAIR, TWO]),
        32, lambda x: 2 * x,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", KERNELS)
def test_values(name: str) -> None:
    call, rows, expected = KERNELS[name]
    x = np.random.default_rng(0).standard_normal((rows, 128)).astype("float32")
    np.testing.assert_allclose(xlamini.jit(call)(x), expected(x), rtol=1e-6)


@pytest.mark.parametrize("name", KERNELS)
def test_a_compiler_of_tpus_takes_them(name: str) -> None:
    from tests.aot.conftest import target_or_skip
    from tests.aot.counts import compiled

    call, rows, _ = KERNELS[name]
    assert "tpu_custom_call" in compiled(call, target_or_skip("tpu:v5e:2x2"), shaped(rows, 128)).as_text()


def test_derivatives() -> None:
    x = np.random.default_rng(0).standard_normal((32, 128)).astype("float32")
    call = KERNELS["one for each program"][0]
    np.testing.assert_allclose(xlamini.grad(lambda x: (call(x) ** 2).sum())(x), 8 * x, rtol=1e-5)


@pytest.mark.parametrize("name", KERNELS)
def test_forward_mode_copies_tangents(name: str) -> None:
    call, rows, expected = KERNELS[name]
    x, t = np.random.default_rng(0).standard_normal((2, rows, 128)).astype("float32")
    out, tangent = xlamini.jvp(call, (x,), (t,))
    np.testing.assert_allclose(out, expected(x), rtol=1e-6)
    np.testing.assert_allclose(tangent, expected(t), rtol=1e-6)


def test_a_copy_is_shown_with_its_parts() -> None:
    text = str(xlamini.make_jaxpr(KERNELS["two, and a count"][0])(jnp.ones((16, 128))))
    assert "start_copy " in text
    assert " <- " in text


def test_bad_input() -> None:
    with pytest.raises(TypeError, match="takes refs of the kernel"):
        pltpu.make_async_copy(jnp.ones(3), jnp.ones(3), jnp.ones(3)).start()
