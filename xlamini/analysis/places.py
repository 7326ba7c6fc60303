"""Places in the user's program, in words: line, variable, iteration."""
from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from xlamini.analysis.unroll import Loops
from xlamini.core import Equation

WIDTH = 100
"""How much of a source line is shown."""


class EquationLocation(NamedTuple):
    """Where an equation comes from: the user's line, the variable that it assigns, the iterations of loops."""

    file: str
    line: int
    function: str
    source: str
    variable: str | None
    primitive: str
    iterations: Loops = ()

    def __str__(self) -> str:
        where = f"{self.file}:{self.line} ({self.function})" if self.line else "unknown place"
        loop = f", iteration {', '.join(map(str, self.iterations))}" if self.iterations else ""
        return f"{where}{loop}: {_shortened(self.source)}" if self.source else where + loop

    def as_dict(self) -> dict[str, Any]:
        return {**self._asdict(), "iterations": list(self.iterations)}


def _shortened(text: str) -> str:
    return text if len(text) <= WIDTH else text[: WIDTH - 1] + "…"


def place_of(eqn: Equation, loops: Loops = ()) -> EquationLocation:
    source, primitive = eqn.provenance.source, eqn.primitive.name
    if source is None:
        return EquationLocation("", 0, "", "", None, primitive, loops)
    return EquationLocation(source.file, source.line, source.function, source.text, source.target, primitive, loops)


def span(value: Any) -> str:
    """The range of an array's values, in words."""
    x = np.asarray(value)
    if x.size == 1:
        return f"{x.item():.6g}" if np.issubdtype(x.dtype, np.inexact) else str(x.item())
    if np.iscomplexobj(x) or not x.size:
        return f"{x.size} values"
    x = x.astype(np.float64)
    if not np.isfinite(x).all():
        return f"{x.size} values, {int(np.isnan(x).sum())} of them NaN and {int(np.isinf(x).sum())} infinite"
    low, high = f"{x.min():.6g}", f"{x.max():.6g}"
    return f"{x.size} values, all {low}" if low == high else f"{x.size} values from {low} to {high}"
