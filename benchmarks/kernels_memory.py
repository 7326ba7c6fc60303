"""The memory of a training step of 12 layers at 8192 tokens, compiled for a target that need not be there.

    python benchmarks/kernels_memory.py gpu:h200

Rows: operations that XLA compiles; the library's kernels; both once more with each layer computed again backward.
"""
from __future__ import annotations

import functools
import sys
import time
from typing import Any

import numpy as np

import xlamini
from xlamini import lax, nn, numpy as jnp
from xlamini.experimental.pallas.ops.gpu.rms_norm import rms_norm
from xlamini.nn.kernels.cross_entropy import Blocks, cross_entropy

LAYERS, TOKENS, HEADS, FEATURES, CLASSES = 12, 8192, 8, 1024, 50304


def norm(x: Any, weight: Any, residual: Any, kernels: bool) -> tuple[Any, Any]:
    if kernels:
        return rms_norm(x, weight, None, residual=residual)
    total = x + residual
    wide = total.astype(np.float32)
    return (wide * lax.rsqrt((wide**2).mean(-1, keepdims=True) + 1e-5) * weight).astype(x.dtype), total


def layer(kernels: bool, state: Any, w: Any) -> Any:
    x, residual = state
    y, residual = norm(x, w["norm1"], residual, kernels)
    q, k, v = ((y @ w[name]).reshape(1, TOKENS, HEADS, -1) for name in "qkv")
    implementation = "flash" if kernels else "xla"
    y = nn.dot_product_attention(q, k, v, is_causal=True, implementation=implementation)
    y, residual = norm(y.reshape(TOKENS, FEATURES) @ w["o"], w["norm2"], residual, kernels)
    return (nn.gelu(y @ w["up"]) @ w["down"], residual), None


def loss(kernels: bool, again: bool, params: Any, tokens: Any) -> Any:
    step = functools.partial(layer, kernels)
    x = params["embedding"][tokens]
    (x, residual), _ = lax.scan(xlamini.checkpoint(step) if again else step, (x, x * 0), params["layers"])
    logits = (x + residual) @ params["embedding"].T
    labels = jnp.roll(tokens, -1)
    if kernels:
        return cross_entropy(Blocks(), logits, labels).mean()
    return -jnp.take_along_axis(nn.log_softmax(logits.astype(np.float32)), labels[:, None], 1).mean()


def shapes() -> Any:
    def half(*shape: int) -> Any:
        return xlamini.ShapeDtypeStruct(shape, "bfloat16")

    square = dict.fromkeys("qkvo", half(LAYERS, FEATURES, FEATURES))
    wide = {"up": half(LAYERS, FEATURES, 4 * FEATURES), "down": half(LAYERS, 4 * FEATURES, FEATURES)}
    norms = dict.fromkeys(("norm1", "norm2"), half(LAYERS, FEATURES))
    return {"embedding": half(CLASSES, FEATURES), "layers": {**square, **wide, **norms}}


def main(spec: str) -> None:
    target, tokens = xlamini.target(spec), xlamini.ShapeDtypeStruct((TOKENS,), "int32")
    for again in (False, True):
        for kernels in (False, True):
            start = time.perf_counter()
            step = xlamini.jit(xlamini.value_and_grad(lambda *args, a=again, k=kernels: loss(k, a, *args)))
            try:
                size = step.trace(shapes(), tokens).lower(target=target).compile().memory_analysis().temp_size_in_bytes
                shown = f"{size / 2**30:8.2f} GiB of temporaries"
            except Exception as error:
                shown = str(error).splitlines()[0][:150]
            print(f"kernels={kernels!s:5} again={again!s:5} {shown}, {time.perf_counter() - start:.0f} s", flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
