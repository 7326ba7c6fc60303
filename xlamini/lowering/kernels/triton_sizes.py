"""What values Triton's kernels may have: sizes that are powers of two, and dtypes that GPUs have."""
from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from xlamini.core import Equation
from xlamini.core.errors.kernel_errors import KernelError
from xlamini.lowering.kernels.equations import named

_DTYPES = frozenset(
    "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float16 bfloat16 float32 float64 float8_e4m3fn float8_e5m2"
    .split()
)  # fmt: skip


def is_power_of_two(n: int) -> bool:
    return n > 0 and n & (n - 1) == 0


def next_sizes(shape: Sequence[int]) -> tuple[int, ...]:
    """The shape with each size rounded up to a power of two."""
    return tuple(1 << max(n - 1, 0).bit_length() for n in shape)


def check_part(ref: str, block: Sequence[int], shape: Sequence[int]) -> None:
    """KernelError for a part of a ref whose sizes are not powers of two."""
    if not all(map(is_power_of_two, shape)):
        near = (
            f"give it a BlockSpec of {next_sizes(block)} instead of {tuple(block)} (what reaches beyond the end of the "
            "array is masked), or "
        )
        raise KernelError(
            f"{ref} is read or written in parts of shape {tuple(shape)}, but a GPU's kernel has only sizes that are "
            f"powers of two; {'' if next_sizes(block) == tuple(block) else near}read parts of such sizes"
        )


def check_dtype(what: str, dtype: np.dtype) -> None:
    """KernelError for a dtype that the compiler of kernels does not have, and on some of which it ends the process."""
    if dtype.name not in _DTYPES:
        raise KernelError(
            f"{what} is of dtype {dtype.name}, which a GPU's kernel does not have; convert it outside of the kernel"
        )


def check_equation(eqn: Equation) -> None:
    """KernelError for an equation with results of a dtype that GPUs do not have."""
    for out in eqn.outvars:
        check_dtype(f"the result of {named(eqn)}", out.aval.dtype)


def check_sizes(eqn: Equation) -> None:
    """KernelError for an equation with a result whose sizes are not powers of two."""
    for shape in (out.aval.shape for out in eqn.outvars):
        if not all(map(is_power_of_two, shape)):
            raise KernelError(
                f"{named(eqn)} makes a value of shape {shape}, but a GPU's kernel has only sizes that are powers of "
                f"two; compute on {next_sizes(shape)}, and mask what is too much"
            )
