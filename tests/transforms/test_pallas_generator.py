"""The generator of random bits in kernels: on the CPU by hashes, on a TPU by its core."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini
from tests.aot.conftest import target_or_skip
from tests.aot.counts import compiled
from xlamini import lax
from xlamini.experimental import pallas as pl
from xlamini.experimental.pallas import tpu as pltpu

SEEDS = pl.BlockSpec(memory_space=pltpu.SMEM)


def _by_program(seeds: Any, o: Any) -> None:
    pltpu.prng_seed(seeds[0], pl.program_id(0))
    o[...] = pltpu.prng_random_bits((8, 128))


def _in_a_loop(seeds: Any, o: Any) -> None:
    pltpu.prng_seed(seeds[0])

    def step(i: Any, carry: Any) -> Any:
        o[pl.ds(8 * i, 8)] = pltpu.prng_random_bits((8, 128))
        return carry

    lax.fori_loop(0, 4, step, 0)


OUT = xlamini.ShapeDtypeStruct((32, 128), "int32")
KERNELS = {
    "by program": pl.pallas_call(
        _by_program, OUT, grid=4, in_specs=[SEEDS], out_specs=pl.BlockSpec((8, 128), lambda i: (i, 0))
    ),
    "in a loop": pl.pallas_call(_in_a_loop, OUT, in_specs=[SEEDS]),
}


def drawn(name: str, seed: int) -> np.ndarray:
    return np.asarray(xlamini.jit(KERNELS[name])(np.array([seed], np.int32)))


@pytest.mark.parametrize("name", KERNELS)
def test_bits_are_even_and_differ(name: str) -> None:
    bits = drawn(name, 7).view(np.uint32)
    assert len(np.unique(bits)) == bits.size
    each = (bits[..., None] >> np.arange(32)) & 1
    assert abs(each.mean(axis=(0, 1)) - 0.5).max() < 0.05


@pytest.mark.parametrize("name", KERNELS)
def test_the_seed_says_which_bits(name: str) -> None:
    assert (drawn(name, 7) == drawn(name, 7)).all()
    assert (drawn(name, 7) == drawn(name, 8)).mean() < 0.01


@pytest.mark.parametrize("name", KERNELS)
def test_a_compiler_of_tpus_takes_it(name: str) -> None:
    seed = xlamini.ShapeDtypeStruct((1,), "int32")
    assert "tpu_custom_call" in compiled(KERNELS[name], target_or_skip("tpu:v5e:2x2"), seed).as_text()


def test_outside_of_kernels() -> None:
    with pytest.raises(RuntimeError, match="prng_seed"):
        pltpu.prng_seed(1)
