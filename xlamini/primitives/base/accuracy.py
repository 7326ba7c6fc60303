"""Accuracy requirements: the argument `accuracy` of exp, log, sin and related functions."""
from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any

from xlamini.core import Avals, Params, ShapedArray, api_boundary_methods
from xlamini.core.program.checks import KEEPS_NAN
from xlamini.core.program.form import Form, Platform
from xlamini.primitives.elementwise.by_parts import ByParts


class AccuracyMode(Enum):
    """HIGHEST for the most exact implementation there is, DEFAULT for the platform's usual one.

    >>> lax.exp(1.0, accuracy=AccuracyMode.HIGHEST)
    Array(2.7182817, dtype=float32, weak_type=True)
    """

    HIGHEST = 1
    DEFAULT = 2

    def __str__(self) -> str:
        return f"AccuracyMode.{self.name}"


@dataclass(frozen=True)
class Tolerance:
    """An error bound on a result: `atol + rtol * abs(result)`, or `ulps` units in its last place.

    ValueError for a negative number.

    >>> Tolerance(rtol=1e-3)
    Tolerance(atol=0.0, rtol=0.001, ulps=0)
    """

    atol: float = 0.0
    rtol: float = 0.0
    ulps: int = 0

    def __post_init__(self) -> None:
        if min(self.atol, self.rtol, self.ulps) < 0:
            raise ValueError(f"Tolerance: atol, rtol and ulps must not be negative, got {self}")


api_boundary_methods(Tolerance)
Accuracy = Tolerance | AccuracyMode | None


class Accurate(ByParts):
    """An operation whose accuracy may be asked for; its derivative has the platform's usual one."""

    checks = KEEPS_NAN

    def derivatives(self, *partials: Callable[..., Any]) -> Callable[..., Any]:
        return super().derivatives(*map(_of_any_accuracy, partials))

    def result(self, aval: ShapedArray, *, accuracy: Accuracy = None) -> ShapedArray:
        if accuracy is not None and not isinstance(accuracy, Tolerance | AccuracyMode):
            raise TypeError(
                f"{self.name}: accuracy must be a Tolerance, an AccuracyMode or None, got {accuracy!r}; "
                "for example lax.Tolerance(rtol=1e-3)"
            )
        return super().result(aval)

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form | None:
        """Where an accuracy is asked for, real numbers are left to XLA."""
        is_asked = params.get("accuracy") is not None and avals[0].dtype.kind != "c"
        return None if is_asked else super().form(platform, avals, outs, params)

    def lower(self, ctx: Any, x: Any, *, accuracy: Accuracy = None) -> Any:
        return self.by_xla(ctx, x, **hlo_accuracy(accuracy))

    def shown_params(self, params: Params) -> Params:
        return {name: value for name, value in params.items() if value is not None}


def _of_any_accuracy(partial: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(partial)
    def of_any(x: Any, *, out: Any, accuracy: Accuracy = None) -> Any:
        return partial(x, out=out)

    return of_any


def hlo_accuracy(accuracy: Accuracy) -> dict[str, str]:
    """The attribute of a StableHLO operation that asks for this accuracy, in MLIR's notation."""
    if accuracy is None:
        return {}
    if isinstance(accuracy, AccuracyMode):
        return {"result_accuracy": f"#stablehlo.result_accuracy<mode = {_mode(accuracy.name)}>"}
    bounds = f"atol = {accuracy.atol:.17e}, rtol = {accuracy.rtol:.17e}, ulps = {accuracy.ulps}"
    return {"result_accuracy": f"#stablehlo.result_accuracy<{bounds}, mode = {_mode('TOLERANCE')}>"}


def _mode(name: str) -> str:
    return f"#stablehlo.result_accuracy_mode<{name}>"
