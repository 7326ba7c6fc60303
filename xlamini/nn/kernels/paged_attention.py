"""Attention of one query for each example to keys in pages, a step of decoding.

Pages: Kwon et al., "Efficient Memory Management for Large Language Model Serving with PagedAttention" (2023), 4.1.
"""
from __future__ import annotations

import functools
from typing import Any

import numpy as np

from xlamini import lax, numpy as jnp
from xlamini.nn.kernels.flash_attention import softmax_step
from xlamini.nn.kernels.flash_tiles import LEAST, NEVER, product
from xlamini.nn.kernels.targets import GRID, Hints, for_target
from xlamini.staging.trace.shape_struct import ShapeDtypeStruct
from xlamini.transforms.pallas.api import pallas_call
from xlamini.transforms.pallas.control_flow import when
from xlamini.transforms.pallas.grid import num_programs, program_id
from xlamini.transforms.pallas.specs import VMEM, BlockSpec, PrefetchScalarGridSpec


def paged(q: Any, k_pages: Any, v_pages: Any, lengths: Any, tables: Any, cap: float | None, walk: str | None) -> Any:
    """The means of values, of shape (b, heads of keys, shared, h), for queries of that shape, which are scaled.

    `k_pages` and `v_pages` have shape (heads of keys, pages, page size, h); `lengths`, int32, (b,), how many keys each
    example has, and `tables`, int32, (b, pages of an example), where they are. `cap` bounds the products by
    `cap * tanh(products / cap)`. 0 where there is no key.
    """
    return for_target(functools.partial(_attend, cap), walk, q, k_pages, v_pages, lengths, tables)


def _attend(cap: float | None, walk: str, q: Any, k_pages: Any, v_pages: Any, lengths: Any, tables: Any) -> Any:
    compute = _by_kernel if walk == GRID else _by_xla
    return compute(cap, q, k_pages, v_pages, lengths, tables)


def _by_xla(cap: float | None, q: Any, k_pages: Any, v_pages: Any, lengths: Any, tables: Any) -> Any:
    """The pages are copied to one array for each example."""
    b, heads, _, h = q.shape
    k, v = (x[:, tables].swapaxes(0, 1).reshape(b, heads, -1, h) for x in (k_pages, v_pages))
    fit = _capped(cap, jnp.einsum("bmgh,bmsh->bmgs", q, k, preferred_element_type=np.float32))
    there = jnp.arange(k.shape[2]) < lengths[:, None, None, None]
    fit = jnp.where(there, fit, NEVER)
    weights = jnp.exp(fit - jnp.maximum(fit.max(-1, keepdims=True), LEAST))
    total = weights.sum(-1, keepdims=True)
    mean = jnp.einsum("bmgs,bmsh->bmgh", weights, v.astype(np.float32)) / jnp.where(total == 0, 1.0, total)
    return mean.astype(q.dtype)


def _by_kernel(cap: float | None, q: Any, k_pages: Any, v_pages: Any, lengths: Any, tables: Any) -> Any:
    b, heads, shared, h = q.shape
    size, count = k_pages.shape[2], tables.shape[1]
    own = BlockSpec((None, None, shared, h), lambda b, m, p, *_: (b, m, 0, 0))
    page = BlockSpec((None, None, size, h), lambda b, m, p, lengths, tables: (m, tables[b * count + p], 0, 0))
    spec = PrefetchScalarGridSpec(
        2,
        grid=(b, heads, count),
        in_specs=[own, page, page],
        out_specs=own,
        scratch_shapes=[VMEM((shared, n), np.float32) for n in (1, 1, h)],
    )
    call = pallas_call(
        functools.partial(_kernel, cap),
        ShapeDtypeStruct(q.shape, q.dtype),
        grid_spec=spec,
        name="paged_attention",
        compiler_params=Hints(("parallel", "parallel", "arbitrary")),
    )
    return call(lengths, tables.reshape(-1), q, k_pages, v_pages)


def _kernel(cap: float | None, lengths: Any, tables: Any, q: Any, k: Any, v: Any, out: Any, *state: Any) -> None:
    step, length = program_id(2), lengths[program_id(0)]
    first = step * k.shape[0]

    @when(step == 0)
    def _start() -> None:
        for ref, number in zip(state, (LEAST, 0.0, 0.0), strict=True):
            ref[...] = jnp.full(ref.shape, number, ref.dtype)

    @when(first < length)
    def _fold() -> None:
        fit = _capped(cap, product(q[...], k[...], (1, 1)))
        there = first + lax.broadcasted_iota(np.int32, fit.shape, 1) < length
        after = softmax_step([x[...] for x in state], jnp.where(there, fit, NEVER), v[...])
        for ref, value in zip(state, after, strict=True):
            ref[...] = value

    @when(step == num_programs(2) - 1)
    def _end() -> None:
        total = state[1][...]
        out[...] = (state[2][...] / jnp.where(total == 0, 1.0, total)).astype(out.dtype)


def _capped(cap: float | None, fit: Any) -> Any:
    return fit if cap is None else cap * jnp.tanh(fit / cap)
