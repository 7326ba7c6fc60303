"""Matrix products in many dtypes, einsum, FFTs, and a mixture of experts."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

from benchmarks.targets.program import Program, Spec, f32, i32

EXPERTS, CHOSEN, CAPACITY = 8, 2, 1024


def programs(jax: ModuleType) -> list[Program]:
    """The programs of this family."""
    return [*_dots(jax), *_batched(jax), *_transforms(jax), *_experts(jax)]


def _dots(jax: ModuleType) -> list[Program]:
    jnp, lax = jax.numpy, jax.lax
    half, byte, tiny = (Spec((n, n), d) for n, d in ((4096, "bfloat16"), (1024, "int8"), (1024, "float8_e4m3fn")))

    def wide(a: Any, b: Any) -> Any:
        return lax.dot(a, b, preferred_element_type=jnp.float32)

    squared = jax.grad(lambda a, b: (wide(a, b) ** 2).sum(), (0, 1))
    return [
        Program("dot_bf16", lambda a, b: a @ b, (half, half)),
        Program("dot_bf16_to_f32", wide, (half, half)),
        Program("dot_bf16_to_f32_grad", squared, (half, half)),
        Program("matmul_int8", lambda a, b: lax.dot(a, b, preferred_element_type=jnp.int32), (byte, byte)),
        Program("matmul_fp8", lambda a, b: lax.dot(a, b, preferred_element_type=jnp.bfloat16), (tiny, tiny)),
    ]


def _batched(jax: ModuleType) -> list[Program]:
    jnp = jax.numpy

    def curvature(x: Any, w: Any) -> Any:
        def loss(u: Any) -> Any:
            return jnp.tanh(w[:16, :16] @ u).sum()

        return jax.vmap(jax.hessian(loss))(x[:, 0, :16])

    def swapped(a: Any, b: Any) -> Any:
        return jnp.einsum("bij,jk->bki", a, b)

    return [
        Program("einsum_f32", swapped, (f32(2, 4096, 4096), f32(4096, 4096))),
        Program("vmap_hessian", curvature, (f32(8, 256, 256), f32(256, 256))),
    ]


def _transforms(jax: ModuleType) -> list[Program]:
    fft = jax.numpy.fft

    def filtered(x: Any) -> Any:
        return fft.irfft2(fft.rfft2(x) * fft.rfft2(x[:1]), s=(512, 512))

    power = jax.grad(lambda x: (abs(fft.fft(x)) ** 2).sum())
    return [Program("fft2_conv", filtered, (f32(64, 512, 512),)), Program("fft_grad", power, (f32(64, 1024),))]


def _experts(jax: ModuleType) -> list[Program]:
    lax, mixed = jax.lax, _mixture(jax)
    params = {"route": f32(512, EXPERTS), "up": f32(EXPERTS, 512, 2048), "down": f32(EXPERTS, 2048, 512)}
    ragged = jax.grad(lambda x, w, sizes: (lax.ragged_dot(x, w, sizes) ** 2).sum(), (0, 1))
    return [
        Program("moe_train", jax.grad(lambda p, x: (mixed(p, x) ** 2).sum(), (0, 1)), (params, f32(4096, 512))),
        Program("ragged_dot_grad", ragged, (f32(4096, 512), f32(EXPERTS, 512, 1024), i32(EXPERTS))),
    ]


def _mixture(jax: ModuleType) -> Callable[[Any, Any], Any]:
    """Each token goes to two experts; an expert takes its first thousand tokens, in the order of a sort."""
    jnp, lax, nn = jax.numpy, jax.lax, jax.nn

    def run(p: Any, x: Any) -> Any:
        tokens, width = x.shape
        weights, experts = lax.top_k(nn.softmax(x @ p["route"]), CHOSEN)
        weights, experts = weights / weights.sum(-1, keepdims=True), experts.reshape(-1)
        order = jnp.argsort(experts)
        chosen = experts[order]
        place = jnp.arange(tokens * CHOSEN) - jnp.searchsorted(chosen, jnp.arange(EXPERTS))[chosen]
        slot = jnp.where(place < CAPACITY, chosen * CAPACITY + place, EXPERTS * CAPACITY)
        given = jnp.zeros((EXPERTS * CAPACITY, width), x.dtype).at[slot].set(x[order // CHOSEN], mode="drop")
        hidden = nn.silu(jnp.einsum("ecd,edf->ecf", given.reshape(EXPERTS, CAPACITY, width), p["up"]))
        out = jnp.einsum("ecf,efd->ecd", hidden, p["down"]).reshape(EXPERTS * CAPACITY, width)
        out = out.at[slot].get(mode="fill", fill_value=0) * weights.reshape(-1)[order][:, None]
        return jnp.zeros_like(x).at[order // CHOSEN].add(out)

    return run
