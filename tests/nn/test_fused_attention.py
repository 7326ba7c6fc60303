"""What platforms with kernels compute for long sequences, as scans on the CPU: what XLA's operations compute."""
from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xlamini as jax
from xlamini import nn, numpy as jnp
from xlamini.core import aval_of
from xlamini.core.program.form import Platform
from xlamini.nn.fused_attention import Attention, AttentionDerivative

PLACES = 24


def normal(seed: int, *shape: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def operands(n: int, m: int, has_mask: bool) -> list[Any]:
    mask = np.random.default_rng(9).random((2, 1, PLACES, PLACES)) < 0.4
    mask[1, :, 3:5] = False
    arrays = [normal(0, 2, PLACES, n, 8), normal(1, 2, PLACES, m, 8), normal(2, 2, PLACES, m, 8)]
    return [*arrays, *([mask] if has_mask else [])]


CASES = {  # heads of queries and keys, before, after, mask
    "causal": (2, 2, None, 0, False),
    "shared keys and a window": (4, 2, 7, 2, False),
    "mask": (4, 2, None, None, True),
    "causal with a mask": (2, 2, None, 0, True),
}
TPU, GPU = Platform("tpu", kernels=True), Platform("cuda", kernels=True)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("walk", ["grid", "loop"])
def test_kernels_give_what_the_program_gives(name: str, walk: str) -> None:
    n, m, before, after, has_mask = CASES[name]
    how = Attention(0.3, before, after, None, has_mask)
    given = operands(n, m, has_mask)
    mean, logs = jax.jit(how.program)(*given)
    by_tiles = jax.jit(lambda *x: how._by_tiles(walk, *x))
    found = by_tiles(*given)
    alone = np.zeros((2, PLACES), bool)
    if has_mask:
        alone = np.asarray(how.sees_nothing(*given[:2], given[3]))[:, :, 0, 0]
        assert alone.any()
    np.testing.assert_allclose(found[0], mean, rtol=2e-5, atol=2e-5)
    np.testing.assert_allclose(*(np.asarray(x).swapaxes(1, 2)[~alone] for x in (found[1], logs)), rtol=2e-5, atol=2e-5)
    back = [*given, *found, normal(5, *mean.shape)]
    of = AttentionDerivative(how)
    cts = jax.jit(lambda *x: of._by_tiles(walk, *x))(*back)
    for x, y in zip(cts, jax.jit(of.program)(*back), strict=True):
        np.testing.assert_allclose(x, y, rtol=5e-5, atol=5e-5)


def kernel_of(platform: Platform, how: Attention, dtype: str, places: tuple[int, int] = (512, 512), h: int = 64) -> str:
    avals = [aval_of(jax.ShapeDtypeStruct((1, n, 2, h), dtype)) for n in (*places, places[1])]
    found = how.kernel(platform, avals)
    return "" if found is None else getattr(found, "args", ("cudnn",))[0]


def test_the_choice_of_kernels() -> None:
    causal, windowed = Attention(1.0, None, 0), Attention(1.0, 9, 9)
    assert kernel_of(TPU, causal, "float32") == kernel_of(TPU, causal, "bfloat16") == "grid"
    assert kernel_of(GPU, causal, "bfloat16") == "cudnn"
    assert kernel_of(GPU, causal, "float32") == ""
    assert kernel_of(GPU, windowed, "bfloat16") == kernel_of(GPU, causal, "float16", (511, 512)) == "loop"
    assert kernel_of(GPU, causal, "bfloat16", h=256) == "loop"
    assert kernel_of(GPU, causal, "bfloat16", h=512) == ""
    assert kernel_of(TPU, windowed, "bfloat16", (1024, 512)) == ""  # late queries see no key
    assert [kernel_of(TPU, causal, dtype) for dtype in ("complex64", "int32", "int16")] == [""] * 3
    assert kernel_of(GPU, causal, "int16") == kernel_of(TPU, causal, "bfloat16", h=0) == ""
    exact = Attention(1.0, None, 0, "highest")
    assert (kernel_of(TPU, exact, "float32"), kernel_of(TPU, exact, "bfloat16")) == ("", "grid")


def test_platforms_that_run_kernels() -> None:
    refusing = Platform("cuda"), Platform("tpu", True, True), Platform("cpu", kernels=True)
    assert not any(platform.runs_kernels for platform in refusing)
    assert Platform("gpu", kernels=True).runs_kernels and Platform("tpu", True, True, manual=True).runs_kernels


def test_a_product_asked_to_be_exact_is_xlas() -> None:
    def attend(x: Any) -> Any:
        with jax.default_matmul_precision("highest"):
            return nn.dot_product_attention(x, x, x)

    x = jax.ShapeDtypeStruct((1, 512, 2, 64), "float32")
    assert "pallas_call" not in str(jax.make_jaxpr(attend, platform="tpu")(x))
    assert "pallas_call" in str(jax.make_jaxpr(lambda x: nn.dot_product_attention(x, x, x), platform="tpu")(x))


def test_arguments_that_stand_for_numbers() -> None:
    x = normal(0, 8, 2, 4)
    causal, window = (
        nn.dot_product_attention(x, x, x, **how) for how in ({"is_causal": True}, {"local_window_size": (3, 2)})
    )
    for flag in (np.array(True), jnp.array(True), 1):
        np.testing.assert_array_equal(nn.dot_product_attention(x, x, x, is_causal=flag), causal)
    for size in ([3, 2], np.array([3, 2])):
        np.testing.assert_array_equal(nn.dot_product_attention(x, x, x, local_window_size=size), window)
    nn.dot_product_attention(x, x, x, local_window_size=jnp.array(3))
    with pytest.raises(TypeError, match="is_causal must be True or False"):
        nn.dot_product_attention(x, x, x, is_causal=[1])  # type: ignore[arg-type]


@pytest.mark.full
def test_long_sequences_on_the_cpu_are_as_they_were() -> None:
    q, ct = normal(0, 1, 512, 1, 4), normal(1, 1, 512, 1, 4)

    def all_of(implementation: Any) -> list[Any]:
        def attend(q: Any) -> Any:
            return nn.dot_product_attention(q, q, q, is_causal=True, implementation=implementation)

        value, back = jax.vjp(attend, q)
        _, pushed = jax.jvp(attend, (q,), (ct,))
        of_grad = jax.jvp(lambda q: jax.vjp(attend, q)[1](ct)[0], (q,), (ct,))[1]
        both = jax.vmap(attend)(jnp.stack([q, ct]))
        of_linear = jax.grad(lambda q: (jax.linearize(attend, q)[1](ct) ** 2).sum())(q)
        second = jax.jacfwd(jax.jacfwd(lambda s: attend(q * s)))(1.0)
        mapped = jax.vmap(jax.grad(lambda q: (attend(q) ** 2).sum()))(jnp.stack([q, ct]))
        return [value, *back(ct), pushed, jax.linearize(attend, q)[1](ct), of_grad, both, of_linear, second, mapped]

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
    assert not has_kernels(512, bias=np.zeros((2, 1, 1), np.float32))
