"""The options of `pallas_call` that a kernel keeps as they are: its name, how it runs, and what compilers are told."""
from __future__ import annotations

import abc
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from xlamini.core.program.kernels import CostEstimate
from xlamini.transforms.pallas.check.params import InterpretParams
from xlamini.transforms.pallas.tpu_params import MosaicParams
from xlamini.transforms.pallas.triton_params import TritonParams

class _Params(abc.ABC):
    """The parameters of a target's compiler, or of those of several: what has a field of one."""

    @classmethod
    def __subclasshook__(cls, other: type) -> bool:
        return not _FIELDS.isdisjoint(getattr(other, "__dataclass_fields__", getattr(other, "_fields", ())))


_FIELDS = {f.name for kind in (MosaicParams, TritonParams) for f in dataclasses.fields(kind)}
_KINDS = {
    "name": (str, "a string"),
    "interpret": (bool | np.bool_ | InterpretParams, "True, False or InterpretParams()"),
    "compiler_params": (
        _Params | Mapping | None, "pallas.tpu.CompilerParams() or pallas.triton.CompilerParams()"
    ),
    "cost_estimate": (CostEstimate | None, "CostEstimate(flops, transcendentals, bytes_accessed)"),
}  # fmt: skip


def checked_options(**options: Any) -> dict[str, Any]:
    """The options, by the names of a kernel's fields.

    TypeError for one of another type, ValueError for `dimension_semantics` that do not fit the grid.
    """
    for option, (kind, example) in _KINDS.items():
        if not isinstance(options[option], kind):
            raise TypeError(f"pallas_call: {option} must be {example}, got {options[option]!r}")
    _check_semantics(options["grid"], getattr(options["compiler_params"], "dimension_semantics", None))
    return options


def _check_semantics(grid: Sequence[int], semantics: Sequence[str] | None) -> None:
    if semantics is not None and len(semantics) not in (len(grid), max(len(grid), 1)):
        raise ValueError(
            f"pallas_call: dimension_semantics has {len(semantics)} entries for a grid of {len(grid)} axes; give one "
            "for each axis"
        )
