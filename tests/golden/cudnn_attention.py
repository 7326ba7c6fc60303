"""Programs with attention by cuDNN, whose custom calls equal JAX's: target, JSON, types and layouts.

Both the recorder and the test lower them for a GPU that need not be there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any

_CALL = re.compile(
    r'custom_call @(__cudnn\S+?)\(.*?backend_config = "(.*?)", operand_layouts = (\[.*?\]), '
    r"result_layouts = (\[.*?\])\} : (.*)"
)
X, SHORT, FEW, ONE = (4, 64, 6, 16), (4, 32, 6, 16), (4, 64, 2, 16), (64, 6, 16)
BIAS, ONE_BIAS, HEADS_BIAS, PLAIN = (4, 6, 64, 64), (1, 1, 64, 64), (6, 64, 64), (2, 4, 64, 6, 16)
COUNTS = (4,)

Shapes = list[tuple[tuple[int, ...], str]]


def programs(jax: Any) -> dict[str, tuple[Callable[..., Any], Shapes]]:
    """The functions of the library `jax`, and the shapes and dtypes of their operands."""
    half = [(X, "bfloat16")] * 3
    attend = partial(jax.nn.dot_product_attention, implementation="cudnn")
    functions = {
        "plain": (attend, half),
        "float16": (attend, [(X, "float16")] * 3),
        "one example": (attend, [(ONE, "bfloat16")] * 3),
        "fewer queries": (attend, [(SHORT, "bfloat16"), *half[1:]]),
        "fewer heads of keys": (attend, [half[0], *[(FEW, "bfloat16")] * 2]),
        "causal": (partial(attend, is_causal=True), half),
        "scale": (partial(attend, scale=0.3), half),
        "window": (partial(attend, is_causal=True, local_window_size=(7, 0)), half),
        "bias": (attend, [*half, (BIAS, "bfloat16")]),
        "bias of all examples": (attend, [*half, (ONE_BIAS, "float32")]),
        "bias of one example": (attend, [*half, (HEADS_BIAS, "bfloat16")]),
        "mask": (lambda q, k, v, m: attend(q, k, v, mask=m), [*half, (ONE_BIAS, "bool")]),
        "bias and mask": (attend, [*half, (BIAS, "bfloat16"), (ONE_BIAS, "bool")]),
        "lengths": (_with_lengths(attend), [*half, (COUNTS, "int32"), (COUNTS, "int32")]),
        "lengths, causal": (_with_lengths(attend, is_causal=True), [*half, *[(COUNTS, "int32")] * 2]),
        "lengths of keys": (lambda q, k, v, n: attend(q, k, v, key_value_seq_lengths=n), [*half, (COUNTS, "int32")]),
        "vmap": (jax.vmap(attend), [(PLAIN, "bfloat16")] * 3),
        "residual": (partial(attend, return_residual=True), half),
    }
    gradients = {
        f"gradient: {name}": (_gradient(jax, fun), shapes)
        for name, (fun, shapes) in functions.items()
        if name not in ("residual", "one example", "scale")
    }
    return functions | gradients


def calls(text: str) -> list[Any]:
    """The custom calls of cuDNN in the text of a StableHLO module."""
    return [
        [target, json.loads(re.sub(r"\\([0-9A-F]{2})", lambda m: chr(int(m[1], 16)), config)), *rest]
        for target, config, *rest in _CALL.findall(text)
    ]


def _with_lengths(attend: Any, **options: Any) -> Callable[..., Any]:
    return lambda q, k, v, n, m: attend(q, k, v, query_seq_lengths=n, key_value_seq_lengths=m, **options)


def _gradient(jax: Any, fun: Callable[..., Any]) -> Callable[..., Any]:
    def loss(q: Any, k: Any, v: Any, *rest: Any) -> Any:
        return fun(q, k, v, *rest).astype("float32").sum()

    return jax.grad(loss, (0, 1, 2))
