"""The form of an operation on a platform: the function, of other primitives, by which it is computed there.

A primitive states it in its rule `form(platform, avals, outs, params)`; `lowering/specialize.py` applies the rule to a
program, as the last rewrite before StableHLO.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

PLATFORMS = ("cpu", "cuda", "rocm", "tpu")
"""The names of the platforms that programs are lowered for."""
GPU_NAMES = ("cuda", "gpu")
"""The names of the platform of NVIDIA GPUs; PJRT's devices have the second."""


class Platform(NamedTuple):
    """What a form is chosen by: the platform's name, and whether the program spans several devices.

    With `kernels` its devices run Mosaic's kernels, or Triton's and cuDNN's. Of a part that each device runs on its own
    shards `manual` is true.
    """

    name: str
    spans_devices: bool = False
    kernels: bool = False
    manual: bool = False

    @property
    def runs_kernels(self) -> bool:
        """Whether a kernel of the library may be the form; the compiler cannot split one over several devices."""
        return self.kernels and (self.manual or not self.spans_devices) and (self.is_gpu or self.name == "tpu")

    @property
    def is_gpu(self) -> bool:
        """Whether it is NVIDIA GPUs."""
        return self.name in GPU_NAMES


@dataclass(frozen=True)
class FusedOperation:
    """What a `fused_call` computes: a subclass has a `name`, its parameters as fields, and these methods."""

    name: ClassVar[str]

    def program(self, *operands: Any) -> Sequence[Any]:
        """The results, by operations that every platform has."""
        raise NotImplementedError

    def kernel(self, platform: Platform, avals: Sequence[Any]) -> Callable[..., Any] | None:
        """The function by which a platform computes the results; None if the program is as good."""
        raise NotImplementedError


class Form(NamedTuple):
    """`compute(*operands)` gives what the equation gives; in it the equation itself is lowered as it is.

    A form `is_formula` if XLA's CPU compiler fuses its many simple operations into each reader of the result, and
    computes them again for each index that is read (lowering/fusion_cuts.py).
    """

    compute: Callable[..., Any]
    is_formula: bool = False
