"""What a GPU computes by kernels of itself, with gradients, beside the operations that XLA compiles."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import lax, numpy as jnp, random
from xlamini.nn import dot_product_attention

TOLERANCE = 3e-2
"""For bfloat16, whose products the two sum in other orders."""
PLACES = 512
SEEN = np.random.default_rng(0).random((1, 1, PLACES, PLACES)) < 0.5
SEEN[:, :, 7] = False

ATTENTIONS: dict[str, tuple[int, Callable[..., Any]]] = {  # heads of keys
    "plain": (4, dot_product_attention),
    "causal": (4, partial(dot_product_attention, is_causal=True)),
    "shared keys": (2, partial(dot_product_attention, is_causal=True)),
    "window": (4, partial(dot_product_attention, local_window_size=(40, 9))),
    "causal window": (4, partial(dot_product_attention, is_causal=True, local_window_size=(40, 0))),
    "bias": (4, lambda *operands, **how: _with_bias(*operands, **how)),
    "mask": (4, partial(dot_product_attention, mask=SEEN)),
    "lengths": (4, partial(dot_product_attention, key_value_seq_lengths=np.array([PLACES, 100], np.int32))),
    "vmap": (4, lambda q, k, v, **how: xlamini.vmap(partial(dot_product_attention, **how), (0, None, 0))(q, k[0], v)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTENTIONS)
def test_attention(name: str, accelerator: Any) -> None:
    heads, attend = ATTENTIONS[name]
    shapes = [(2, PLACES, n, 64) for n in (4, heads, heads)]
    operands = [random.normal(random.key(i), shape, "bfloat16") for i, shape in enumerate(shapes)]
    found, wanted = (_with_gradients(partial(attend, implementation=by), operands) for by in (None, "xla"))
    _close(found, wanted)


def _with_bias(q: Any, k: Any, v: Any, **how: Any) -> Any:
    bias = jnp.cos(q[0, :, 0, :1] * jnp.arange(PLACES, dtype=q.dtype))[None, None]
    return dot_product_attention(q, k, v, bias, **how)


@pytest.mark.parametrize("counts", [(100, 0, 412, 300, 60, 1, 90, 61), (0,) * 8, (1024,) + (0,) * 7])
def test_products_in_groups(counts: tuple[int, ...], accelerator: Any) -> None:
    rows = random.normal(random.key(0), (1024, 96), "bfloat16")
    matrices = random.normal(random.key(1), (8, 96, 200), "bfloat16")
    sizes = jnp.array(counts, "int32")
    found = _with_gradients(lambda x, y: lax.ragged_dot(x, y, sizes), [rows, matrices])
    own = jnp.repeat(jnp.arange(9), jnp.append(sizes, 1024 - sizes.sum()), total_repeat_length=1024)
    wanted = _with_gradients(lambda x, y: _one_by_one(x, y, own), [rows, matrices])
    _close(found, wanted)


def _one_by_one(rows: Any, matrices: Any, own: Any) -> Any:
    every = jnp.append(matrices, jnp.zeros_like(matrices[:1]), 0).astype("float32")[own]
    return jnp.einsum("mk,mkn->mn", rows.astype("float32"), every).astype(rows.dtype)


def _with_gradients(fun: Callable[..., Any], operands: Any) -> list[Any]:
    loss = xlamini.grad(lambda *x: (fun(*x).astype("float32") ** 2).sum(), tuple(range(len(operands))))
    return [xlamini.jit(fun)(*operands), *xlamini.jit(loss)(*operands)]


def _close(found: Any, wanted: Any) -> None:
    for x, y in zip(found, wanted, strict=True):
        x, y = np.asarray(x, np.float32), np.asarray(y, np.float32)
        np.testing.assert_allclose(x, y, rtol=TOLERANCE, atol=TOLERANCE * max(np.abs(y).max(), 1))
