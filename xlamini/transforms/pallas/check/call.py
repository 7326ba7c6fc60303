"""The checked run of a kernel in a program: at once where values are known, else as a call from the program."""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from xlamini.core import Avals, Values
from xlamini.core.program.kernels import Kernel
from xlamini.runtime import device_put_value
from xlamini.transforms.callbacks.pure_callback import pure_callback_p
from xlamini.transforms.pallas.check.params import InterpretParams
from xlamini.transforms.pallas.check.run import run_checked


def is_checked(kernel: Kernel) -> bool:
    """Whether a kernel is to run under checks."""
    return isinstance(kernel.interpret, InterpretParams)


def checked_now(kernel: Kernel, operands: Values) -> list[Any]:
    """The results for known operands."""
    return list(map(device_put_value, run_checked(kernel, [np.asarray(device_put_value(x)) for x in operands])))


def checked_later(kernel: Kernel, operands: Values) -> list[Any]:
    """The results in a program that is traced: a callback runs the kernel."""
    params = {"callback": CheckedKernel(kernel), "result_avals": tuple(kernel.out_avals), "mapped": ()}
    return pure_callback_p.bind(*operands, **params, vmap_method="sequential")


@dataclass(frozen=True)
class CheckedKernel:
    """The function that a program calls."""

    kernel: Kernel

    def __repr__(self) -> str:
        return self.kernel.name

    def __call__(self, operands: Sequence[np.ndarray], avals: Avals) -> list[np.ndarray]:
        return run_checked(self.kernel, operands)
