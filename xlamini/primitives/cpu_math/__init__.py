"""CPU substitutes for operations that XLA's CPU backend computes one element at a time.

Each file has one family of functions. A formula is a Python function of simpler operations, all of which LLVM
vectorises; the decorator `vectorised` makes a lowering of it, which an elementwise operation names as its `on_cpu`:

    @elementwise(hlo="stablehlo.sine", on_cpu=formula("circular.sine"), accepts=FLOAT | COMPLEX)
    def sin(x): ...
"""
from __future__ import annotations

import importlib
from typing import Any

from xlamini.primitives.elementwise import Lowering


def formula(path: str) -> Lowering:
    """The lowering `file.name` of a file here, which is imported when the first program is lowered with it."""
    file, _, name = path.partition(".")

    def lower(ctx: Any, *operands: Any) -> Any:
        return getattr(importlib.import_module(f"{__name__}.{file}"), name)(ctx, *operands)

    return lower
