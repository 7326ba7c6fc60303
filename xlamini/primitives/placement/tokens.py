"""Tokens: values without data, which order effects by their use.

A token is an array of bool without elements; its program is ordered by what makes it and what takes it.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from xlamini.core import Axis, Primitive, ShapedArray

TOKEN = ShapedArray((0,), np.dtype(np.bool_))


def create_token(_: Any = None) -> Any:
    """A token that nothing comes before.

    >>> create_token().shape
    (0,)
    """
    return create_token_p.bind()


class CreateToken(Primitive):
    name = "create_token"
    lacks: Mapping[str, str] = {"jvp": "it has no operands", "batch": "it has no operands"}

    def shape_rule(self) -> ShapedArray:
        return TOKEN

    def lower(self, ctx: Any) -> Any:
        return ctx.constant(False, TOKEN)


create_token_p: Final = CreateToken()


def after_all(*operands: Any) -> Any:
    """A token that comes after all of these tokens; TypeError for a value that is none.

    >>> after_all(create_token(), create_token()).shape
    (0,)
    """
    return after_all_p.bind(*operands)


class AfterAll(Primitive):
    name = "after_all"
    lacks: Mapping[str, str] = {"jvp": "of tokens only"}

    def shape_rule(self, *avals: ShapedArray) -> ShapedArray:
        for aval in avals:
            if (aval.shape, aval.dtype) != (TOKEN.shape, TOKEN.dtype):
                found = aval.str_short(short_dtypes=False)
                raise TypeError(f"after_all: its arguments must be tokens, got {found}; create_token makes one")
        return TOKEN

    def batch(self, axis: Axis, operands: Any, dims: Any) -> Any:
        """Batching leaves one token: those of all positions share one order."""
        tokens = [create_token() if d is not None else x for x, d in zip(operands, dims, strict=True)]
        return self.bind(*tokens), None

    def lower(self, ctx: Any, *operands: Any) -> Any:
        if not operands:
            return ctx.constant(False, TOKEN)
        joined = ctx.op("stablehlo.optimization_barrier", *operands, avals=[TOKEN] * len(operands))
        return joined if len(operands) == 1 else joined[0]


after_all_p: Final = AfterAll()
