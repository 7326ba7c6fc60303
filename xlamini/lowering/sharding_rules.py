"""Shardy's rules for operations that it does not know: which dimensions of operands and results share a sharding."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from xlamini.core import Shape

_LETTERS = "ijklmnopqrstuvwxyz"


def factor_name(index: int) -> str:
    """Shardy's name of a factor: i, …, z, z_1, …"""
    return _LETTERS[index] if index < len(_LETTERS) else f"z_{index - len(_LETTERS) + 1}"


def batch_rule(batch: Shape, operands: Sequence[Shape], results: Sequence[Shape]) -> str:
    """The rule of an operation on each example by itself, as MLIR's text; arrays without the batch are whole."""
    names = map(factor_name, itertools.count())
    leading = dict(zip([next(names) for _ in batch], batch, strict=True))
    sizes = dict(leading)

    def mapping(shape: Shape) -> str:
        shared = leading if len(shape) >= len(batch) else {}
        own = {next(names): size for size in shape[len(shared) :]}
        sizes.update(own)
        return f"[{', '.join([*shared, *own])}]"

    sides = (", ".join(map(mapping, side)) for side in (operands, results))
    text = ")->(".join(sides)
    return f"#sdy.op_sharding_rule<({text}) {{{', '.join(f'{name}={size}' for name, size in sizes.items())}}}, custom>"
