"""The options of `pallas_call` that a kernel keeps as they are: its name, how it runs, and what compilers are told."""
from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from xlamini.core.program.kernels import CostEstimate
from xlamini.transforms.pallas.check.params import InterpretParams
from xlamini.transforms.pallas.tpu_params import MosaicParams
from xlamini.transforms.pallas.triton_params import TritonParams

_FIELDS = {f.name for kind in (MosaicParams, TritonParams) for f in dataclasses.fields(kind)}
_KINDS = {
    "name": (str, "a string"),
    "interpret": (bool | np.bool_ | InterpretParams, "True, False or InterpretParams()"),
    "cost_estimate": (CostEstimate | None, "CostEstimate(flops, transcendentals, bytes_accessed)"),
}


def checked_options(**options: Any) -> dict[str, Any]:
    """The options, by the names of a kernel's fields.

    TypeError for one of another type, ValueError for `dimension_semantics` that do not fit the grid.
    """
    for option, (kind, example) in _KINDS.items():
        if not isinstance(options[option], kind):
            raise TypeError(f"pallas_call: {option} must be {example}, got {options[option]!r}")
    _check_params(options["compiler_params"])
    _check_semantics(options["grid"], getattr(options["compiler_params"], "dimension_semantics", None))
    return options


def _check_params(params: Any) -> None:
    """TypeError for what has no field of a target's parameters; an object may have those of several targets."""
    if not (params is None or isinstance(params, Mapping) or any(hasattr(params, name) for name in _FIELDS)):
        raise TypeError(
            "pallas_call: compiler_params must be pallas.tpu.CompilerParams() or pallas.triton.CompilerParams(), got "
            f"{params!r}"
        )


def _check_semantics(grid: Sequence[int], semantics: Sequence[str] | None) -> None:
    if semantics is not None and len(semantics) not in (len(grid), max(len(grid), 1)):
        raise ValueError(
            f"pallas_call: dimension_semantics has {len(semantics)} entries for a grid of {len(grid)} axes; give one "
            "for each axis"
        )
