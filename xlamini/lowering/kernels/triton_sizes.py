"""The sizes that Triton's tensors may have: powers of two."""
from __future__ import annotations

from collections.abc import Sequence

from xlamini.core import Equation
from xlamini.core.errors.kernel_errors import KernelError


def is_power_of_two(n: int) -> bool:
    return n > 0 and n & (n - 1) == 0


def next_sizes(shape: Sequence[int]) -> tuple[int, ...]:
    """The shape with each size rounded up to a power of two."""
    return tuple(1 << max(n - 1, 0).bit_length() for n in shape)


def check_part(ref: str, block: Sequence[int], shape: Sequence[int]) -> None:
    """KernelError for a part of a ref whose sizes are not powers of two."""
    if not all(map(is_power_of_two, shape)):
        raise KernelError(
            f"{ref} is read or written in parts of shape {tuple(shape)}, but a GPU's kernel has only sizes that are "
            f"powers of two; give it a BlockSpec of {next_sizes(block)} instead of {tuple(block)} (what reaches beyond "
            "the end of the array is masked), or read parts of such sizes"
        )


def check_values(eqn: Equation) -> None:
    """KernelError for an equation with a result whose sizes are not powers of two."""
    for out in eqn.outvars:
        shape = out.aval.shape
        if not all(map(is_power_of_two, shape)):
            raise KernelError(
                f"{named(eqn)} makes a value of shape {shape}, but a GPU's kernel has only sizes that are powers of "
                f"two; compute on {next_sizes(shape)}, and mask what is too much"
            )


def named(eqn: Equation) -> str:
    """The equation's primitive, and the user's line."""
    source = eqn.provenance.source
    return f"{eqn.primitive.name}, at {source}," if source else eqn.primitive.name
