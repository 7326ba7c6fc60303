"""What platforms with kernels compute for long sequences, as scans on the CPU: what XLA's operations compute."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini as jax
from xlamini import nn, numpy as jnp
from xlamini.core import aval_of
from xlamini.core.program.form import Platform
from xlamini.nn.fused_attention import Attention, AttentionDerivative, BiasDerivative

PLACES = 24


def normal(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def operands(n: int, m: int, has_bias: bool, has_mask: bool) -> list[Any]:
    mask = np.random.default_rng(9).random((2, 1, PLACES, PLACES)) < 0.4
    mask[1, :, 3:5] = False
    added = [normal(3, 1, n, 1, PLACES)] * has_bias + [mask] * has_mask
    return [normal(0, 2, PLACES, n, 8), normal(1, 2, PLACES, m, 8), normal(2, 2, PLACES, m, 8), *added]


CASES = {  # heads of queries and keys, before, after, bias, mask
    "causal": (2, 2, None, 0, False, False),
    "shared keys and a window": (4, 2, 7, 2, False, False),
    "mask": (4, 2, None, None, False, True),
    "causal with bias and mask": (2, 2, None, 0, True, True),
    "bias": (2, 1, None, None, True, False),
}
TPU, GPU = Platform("tpu"), Platform("cuda", capability="9.0")


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("walk", ["grid", "loop"])
def test_kernels_give_what_the_program_gives(name: str, walk: str) -> None:
    n, m, before, after, has_bias, has_mask = CASES[name]
    how = Attention(0.3, before, after, has_bias, has_mask)
    given = operands(n, m, has_bias, has_mask)
    mean, logs = jax.jit(how.program)(*given)
    by_tiles = jax.jit(lambda *x: how._by_tiles(walk, *x))
    found = by_tiles(*given)
    alone = np.asarray(how.sees_nothing(*given[:2], given[3:]))[:, :, 0, 0] if has_mask else np.zeros((2, PLACES), bool)
    assert has_mask == alone.any()
    np.testing.assert_allclose(found[0], mean, rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(*(np.asarray(x).swapaxes(1, 2)[~alone] for x in (found[1], logs)), rtol=2e-5, atol=2e-5)
    back = [*given, *found, normal(5, *mean.shape)]
    derivatives = [AttentionDerivative(how), *([BiasDerivative(how)] if has_bias else [])]
    for each in derivatives:
        wanted = jax.jit(each.program)(*back)
        cts = jax.jit(lambda *x, each=each: each._by_tiles(walk, *x))(*back)
        for x, y in zip(cts, wanted, strict=True):
            np.testing.assert_allclose(x, y, rtol=5e-5, atol=5e-5)


def kernel_of(platform: Platform, how: Attention, dtype: str, places: tuple[int, int] = (512, 512), h: int = 64) -> str:
    avals = [aval_of(jax.ShapeDtypeStruct((1, n, 2, h), dtype)) for n in (*places, places[1])]
    found = how.kernel(platform, avals)
    return "" if found is None else getattr(found, "args", ("cudnn",))[0]


def test_the_choice_of_kernels() -> None:
    causal, windowed = Attention(1.0, None, 0, False, False), Attention(1.0, 9, 9, False, False)
    assert kernel_of(TPU, causal, "float32") == kernel_of(TPU, causal, "bfloat16") == "grid"
    assert kernel_of(GPU, causal, "bfloat16") == "cudnn"
    assert kernel_of(GPU, causal, "float32") == ""
    assert kernel_of(GPU, windowed, "bfloat16") == kernel_of(GPU, causal, "float16", (511, 512)) == "loop"
    assert kernel_of(GPU, causal, "bfloat16", h=256) == "loop"
    assert kernel_of(GPU, causal, "bfloat16", h=512) == ""
    assert kernel_of(TPU, windowed, "bfloat16", (1024, 512)) == ""  # late queries see no key
    refusing = Platform("cuda"), Platform("cuda", capability="7.5"), Platform("tpu", True), Platform("cpu")
    assert not any(platform.runs_kernels for platform in refusing)
    assert Platform("gpu", capability="10.0").runs_kernels and Platform("tpu", True, manual=True).runs_kernels


def test_long_sequences_on_the_cpu_are_as_they_were() -> None:
    q, ct = normal(0, 1, 512, 1, 4), normal(1, 1, 512, 1, 4)

    def all_of(implementation: Any) -> list[Any]:
        def attend(q: Any) -> Any:
            return nn.dot_product_attention(q, q, q, is_causal=True, implementation=implementation)

        value, back = jax.vjp(attend, q)
        _, pushed = jax.jvp(attend, (q,), (ct,))
        of_grad = jax.jvp(lambda q: jax.vjp(attend, q)[1](ct)[0], (q,), (ct,))[1]
        both = jax.vmap(attend)(jnp.stack([q, ct]))
        return [value, *back(ct), pushed, jax.linearize(attend, q)[1](ct), of_grad, both]

    for x, y in zip(all_of(None), all_of("xla"), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)


def test_short_sequences_and_traced_scales_have_no_kernels() -> None:
    def has_kernels(places: int, **how: Any) -> bool:
        x = jax.ShapeDtypeStruct((1, places, 2, 8), "float32")
        return "fused_call" in str(jax.make_jaxpr(lambda x: nn.dot_product_attention(x, x, x, **how))(x))

    assert has_kernels(512, scale=0.5)
    assert not has_kernels(511)
    assert not has_kernels(512, scale=jnp.float32(0.5))
    assert not has_kernels(512, return_residual=True)
