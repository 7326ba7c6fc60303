"""The form of an operation on a platform: the function, of other primitives, by which it is computed there.

A primitive states it in its rule `form(platform, avals, outs, params)`; `lowering/specialize.py` applies the rule to a
program, as the last rewrite before StableHLO.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")
"""The names of the platforms that programs are lowered for."""


class Platform(NamedTuple):
    """What a form is chosen by: the platform's name, and whether the program spans several devices."""

    name: str
    spans_devices: bool = False


class Form(NamedTuple):
    """`compute(*operands)` gives what the equation gives; in it the equation itself is lowered as it is.

    A form `is_formula` if XLA's CPU compiler fuses its many simple operations into each reader of the result, and
    computes them again for each index that is read (lowering/fusion_cuts.py).
    """

    compute: Callable[..., Any]
    is_formula: bool = False
