"""The checks of rows can fail: each catches the operation that is wrong in the way it looks for, and passes the right one."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import xlamini
from tests import checks
from tests.rows.row import Arg, Row
from xlamini.core.primitive import Primitive, primitives
from xlamini.core.tangents import Zero, is_zero
from xlamini.primitives.convert import convert
from xlamini.primitives.identity import stop_gradient
from xlamini.primitives.shape import reshape, transpose


class Scale(Primitive):
    """The helper of Square: 2 * x * t, linear in t."""

    name = "test_scale"

    def shape_rule(self, x: Any, t: Any) -> Any:
        return x

    def jvp(self, primals: Any, tangents: Any) -> Any:
        (x, t), (dx, dt) = primals, tangents
        terms = [] if is_zero(dx) else [self.bind(dx, t)]
        terms += [] if is_zero(dt) else [self.bind(x, dt)]
        return self.bind(x, t), sum(terms[1:], terms[0])

    def transpose(self, ct: Any, x: Any, t: Any) -> Any:
        return [None, self.bind(x, ct)] if hasattr(x, "builder") else [self.bind(ct, t), None]

    def batch(self, axis: Any, operands: Any, dims: Any) -> Any:
        x, t = (
            transpose(v, (d, *(i for i in range(v.ndim) if i != d))) if d is not None else v[None] + 0 * (w if e == 0 else w)
            for (v, d), (w, e) in zip(zip(operands, dims, strict=True), reversed(list(zip(operands, dims, strict=True))), strict=True)
        )
        return self.bind(x, t), 0

    def lower(self, ctx: Any, x: Any, t: Any) -> Any:
        product = ctx.op("stablehlo.multiply", x, t)
        return ctx.op("stablehlo.add", product, product)
