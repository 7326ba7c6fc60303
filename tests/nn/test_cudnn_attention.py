"""Attention by cuDNN: the custom calls are JAX's, and what cuDNN lacks is said before a GPU sees it."""
from __future__ import annotations

import json
import re
import sys
from typing import Any

import numpy as np
import pytest

import xlamini
from tests.support.paths import GOLDEN
from xlamini import nn
from xlamini.errors import PlatformError

sys.path.append(str(GOLDEN))
from cudnn_attention import calls, programs

RECORDS = json.loads((GOLDEN / "cudnn_attention.json").read_text())
PROGRAMS = programs(xlamini)
HALF = (4, 64, 6, 16), "bfloat16"


def lowered(fun: Any, *shapes: Any) -> str:
    args = [xlamini.ShapeDtypeStruct(shape, dtype) for shape, dtype in shapes]
    return xlamini.jit(fun).trace(*args).lower(lowering_platforms=("cuda",)).as_text()


def attend(*operands: Any, **options: Any) -> Any:
    return nn.dot_product_attention(*operands, implementation="cudnn", **options)


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_calls_are_those_of_jax(name: str) -> None:
    fun, shapes = PROGRAMS[name]
    assert calls(lowered(fun, *shapes)) == RECORDS[name] != []


def test_a_window_that_ends_at_its_place_is_causal() -> None:
    """The kernels look back from the diagonal."""
    ((_, config, *_),) = calls(lowered(lambda *x: attend(*x, local_window_size=(7, 0)), HALF, HALF, HALF))
    assert config["cudnn_fmha_backend_config"]["mask_type"] == "CAUSAL"
    assert config["cudnn_fmha_backend_config"]["sliding_window_length"] == 8


def test_a_mask_of_keys_is_broadcast_to_queries() -> None:
    """JAX takes masks for each query only."""
    text = lowered(lambda q, k, v, m: attend(q, k, v, mask=m), HALF, HALF, HALF, ((4, 1, 1, 64), "bool"))
    assert "tensor<4x1x64x64xbf16>" in calls(text)[0][-1]


def test_a_bias_of_all_examples_is_batched_and_summed_back() -> None:
    """Under vmap it is spread over the examples; its cotangent is their sum, in the shape that it was given."""

    def loss(bias: Any, x: Any) -> Any:
        return xlamini.vmap(lambda b, x: attend(x, x, x, b))(bias, x).astype("float32").sum()

    given = (2, 1, 6, 64, 64), "bfloat16"
    text = lowered(xlamini.grad(loss), given, ((2, *HALF[0]), "bfloat16"))
    assert "tensor<8x6x64x64xbf16>" in calls(text)[1][-1]
    assert "stablehlo.reduce(" in text
    assert re.search(r"return %\d+ : tensor<2x1x6x64x64xbf16>", text)


@pytest.mark.parametrize(
    ("shape", "dtype", "options", "message"),
    (
        ((1, 4, 2, 16), "float32", {}, "bfloat16 and float16, got float32"),
        ((1, 4, 2, 12), "float16", {}, "a multiple of 8 features, 256 at most, got 12"),
        ((1, 4, 2, 264), "float16", {}, "256 at most, got 264"),
        ((1, 4, 2, 16), "float16", {"local_window_size": (3, 2)}, r"no windows of later keys.*pass \(3, 0\)"),
    ),
)
def test_what_cudnn_lacks(shape: Any, dtype: str, options: Any, message: str) -> None:
    x = np.ones(shape, dtype)
    with pytest.raises(NotImplementedError, match=message):
        attend(x, x, x, **options)


def test_odd_numbers_of_places_have_no_derivative() -> None:
    x = np.ones((1, 3, 2, 16), np.float16)
    with pytest.raises(NotImplementedError, match="even numbers of queries and keys, got 3 and 3"):
        xlamini.grad(lambda x: attend(x, x, x).sum())(x)


def test_there_is_none_on_the_cpu() -> None:
    x = np.ones((1, 4, 2, 16), np.float16)
    with pytest.raises(PlatformError, match="NVIDIA GPUs, not on cpu; pass implementation=None or 'xla'"):
        attend(x, x, x)
