"""Attention over arrays with and without a batch."""
from __future__ import annotations

import numpy as np
import pytest

from xlamini import nn


@pytest.mark.full
def test_a_bias_and_a_mask_may_lack_the_batch() -> None:
    q = np.arange(24, dtype=np.float32).reshape(3, 2, 4) / 10
    bias = np.arange(18, dtype=np.float32).reshape(2, 3, 3) / 20
    mask = np.tri(3, dtype=bool)[None]
    fit = np.einsum("tnh,snh->nts", q, q) / 2 + bias
    weights = np.where(mask, np.exp(fit - fit.max(-1, keepdims=True)), 0)
    expected = np.einsum("nts,snh->tnh", weights / weights.sum(-1, keepdims=True), q)
    without = nn.dot_product_attention(q, q, q, bias=bias, mask=mask)
    np.testing.assert_allclose(without, expected, rtol=1e-5)
    of_both = nn.dot_product_attention(q[None], q[None], q[None], bias=bias, mask=mask)
    np.testing.assert_array_equal(of_both[0], without)
