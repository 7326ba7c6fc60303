"""The library's kernels compile for a TPU and for a GPU, forward and backward; attention keeps no array of products."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.aot.counts import compiled, memory, shaped
from xlamini import lax, nn
from xlamini.nn.kernels.cross_entropy import Blocks, cross_entropy
from xlamini.nn.kernels.grouped_matmul import Grouped, grouped_matmul
from xlamini.nn.kernels.norms import Norm, Rows, norm
from xlamini.runtime.targets.topology import Target


def half(*shape: int) -> Any:
    return shaped(*shape, dtype="bfloat16")


def attend(q: Any, k: Any, v: Any, by: Any = "flash") -> Any:
    return nn.dot_product_attention(q, k, v, is_causal=True, implementation=by)


def window(q: Any, k: Any, v: Any) -> Any:
    return nn.dot_product_attention(q, k, v, local_window_size=(200, 0), implementation="flash")


def chosen(q: Any, k: Any, v: Any) -> Any:
    return nn.dot_product_attention(q, k, v, local_window_size=(99, 9))


def layer_norm(x: Any, residual: Any, weight: Any) -> Any:
    return norm(Norm(True, 1e-5), Rows(x, residual, weight, weight))


def losses(logits: Any, labels: Any) -> Any:
    return cross_entropy(Blocks(), logits, labels)


def in_groups(rows: Any, matrices: Any, counts: Any) -> Any:
    return grouped_matmul(Grouped(np.dtype("bfloat16"), False, (256, 256, 256)), rows, matrices, counts)


COUNTS = shaped(9, dtype="int32")
PROGRAMS: dict[str, tuple[Callable[..., Any], tuple[int, ...], tuple[Any, ...]]] = {
    "attention": (attend, (0, 1, 2), (half(1, 1024, 4, 128), half(1, 1024, 2, 128), half(1, 1024, 2, 128))),
    "window": (window, (0, 1, 2), (shaped(1, 700, 2, 64), shaped(1, 700, 2, 64), shaped(1, 700, 2, 64))),
    "layer_norm": (layer_norm, (0, 1, 2), (half(1000, 768), half(1000, 768), half(1, 768))),
    "cross_entropy": (losses, (0,), (half(500, 50257), shaped(500, dtype="int32"))),
    "in_groups": (in_groups, (0, 1), (half(1000, 512), half(4, 512, 384), shaped(4, dtype="int32"))),
    "chosen attention": (chosen, (0, 1, 2), (half(1, 1024, 4, 64), half(1, 1024, 2, 64), half(1, 1024, 2, 64))),
    "chosen product": (lax.ragged_dot, (0, 1), (half(2000, 512), half(9, 512, 384), COUNTS)),
    "product of float16": (
        lax.ragged_dot, (0, 1), (*(shaped(*x, dtype="float16") for x in ((2000, 512), (9, 512, 384))), COUNTS)
    ),
}
KERNELS = {
    "attention": 3, "window": 3, "layer_norm": 2, "cross_entropy": 1, "in_groups": 3, "chosen attention": 3,
    "chosen product": 3, "product of float16": 3,
}  # fmt: skip
"""How many kernels run, forward and backward."""
CALLS = {"tpu": "tpu_custom_call", "cuda": "__gpu$xla.gpu.triton"}


def total(out: Any) -> Any:
    return sum(x.astype("float32").sum() for x in xlamini.tree.leaves(out))


@pytest.mark.parametrize("name", PROGRAMS)
def test_kernels_and_their_derivatives_compile(name: str, target: Target) -> None:
    fun, places, args = PROGRAMS[name]
    both = xlamini.value_and_grad(lambda *args: total(fun(*args)), places)
    lowered = xlamini.jit(both).trace(*args).lower(target=target)
    assert lowered.as_text().count(f"@{CALLS[target.platform]}") == KERNELS[name]
    lowered.compile()


def test_attention_keeps_no_products(target: Target) -> None:
    q = half(1, 4096, 2, 128)
    of_flash, of_choice, of_xla = (
        memory(xlamini.grad(lambda q, by=by: total(attend(q, q, q, by))), target, q) for by in ("flash", None, "xla")
    )
    assert max(of_flash, of_choice) < of_xla / 4


def test_loops_to_a_bound_copy_ahead_on_a_gpu(gpu: Target) -> None:
    fun, _, args = PROGRAMS["attention"]
    assert "cp.async" in str(compiled(fun, gpu, *args).kernels())
