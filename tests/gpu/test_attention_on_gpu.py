"""Attention by cuDNN, with its gradients, beside the operations that XLA compiles."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import xlamini
from xlamini import numpy as jnp, random
from xlamini.nn import dot_product_attention

SHAPE = 2, 64, 4, 32
TOLERANCE = 3e-2
"""For bfloat16, whose products the two sum in other orders."""
BIAS, MASK = np.linspace(-1, 1, 64 * 64).reshape(1, 1, 64, 64), np.tri(64, dtype=bool)[None, None]


def with_bias(q: Any, k: Any, v: Any, **how: Any) -> Any:
    return dot_product_attention(q, k, v, jnp.asarray(BIAS, q.dtype), **how)


def with_mask(q: Any, k: Any, v: Any, **how: Any) -> Any:
    return dot_product_attention(q, k, v, mask=jnp.asarray(MASK), **how)


def with_lengths(q: Any, k: Any, v: Any, **how: Any) -> Any:
    """The cotangents of queries that are not there are zero, as what is computed for them does not count."""
    lengths = jnp.array([64, 17])
    there = (jnp.arange(64) < lengths[:, None])[:, :, None, None]
    attend = partial(dot_product_attention, query_seq_lengths=lengths, key_value_seq_lengths=lengths, **how)
    return jnp.where(there, attend(q, k, v), 0)


def batched(q: Any, k: Any, v: Any, **how: Any) -> Any:
    return xlamini.vmap(partial(dot_product_attention, **how))(q, k, v)


CASES = {
    "plain": dot_product_attention,
    "causal": partial(dot_product_attention, is_causal=True),
    "window": partial(dot_product_attention, is_causal=True, local_window_size=(7, 0)),
    "window without causal": partial(dot_product_attention, local_window_size=(7, 0)),
    "bias": with_bias,
    "mask": with_mask,
    "lengths": with_lengths,
    "vmap": batched,
}


@pytest.mark.parametrize("name", CASES)
def test_cudnn_gives_what_xla_gives(name: str, accelerator: Any) -> None:
    if accelerator.platform != "gpu":
        pytest.skip("cuDNN is for GPUs")
    shape = (2, *SHAPE) if name == "vmap" else SHAPE
    operands = [random.normal(key, shape, "bfloat16") for key in random.split(random.key(0), 3)]
    found, wanted = (_with_gradients(_by(CASES[name], by), operands) for by in ("cudnn", "xla"))
    for x, y in zip(found, wanted, strict=True):
        x, y = np.asarray(x, np.float32), np.asarray(y, np.float32)
        np.testing.assert_allclose(x, y, rtol=TOLERANCE, atol=TOLERANCE * max(np.abs(y).max(), 1))


def _by(attend: Callable[..., Any], implementation: str) -> Callable[..., Any]:
    return lambda q, k, v: attend(q, k, v, implementation=implementation)


def _with_gradients(attend: Callable[..., Any], operands: Any) -> list[Any]:
    loss = xlamini.grad(lambda *x: (attend(*x).astype("float32") ** 2).sum(), (0, 1, 2))
    return [attend(*operands), *xlamini.jit(loss)(*operands)]
