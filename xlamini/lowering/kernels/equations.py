"""What an equation of a kernel may do on a target, and how errors name it."""
from __future__ import annotations

from xlamini.core import Equation
from xlamini.core.errors.kernel_errors import KernelError

_EFFECTS = frozenset({"read", "write", "barrier", "DebugCheck", "DceSink"})
"""Those of refs, and those that only tell other readers of the program something."""


def named(eqn: Equation) -> str:
    """The equation's primitive, and the user's line."""
    source = eqn.provenance.source
    return f"{eqn.primitive.name}, at {source}," if source else eqn.primitive.name


def check_effects(eqn: Equation, target: str) -> None:
    """KernelError for an equation with side effects, such as to print."""
    outside = [effect for effect in eqn.effects if effect.name not in _EFFECTS]
    if outside:
        raise KernelError(
            f"{named(eqn)} has a side effect, {outside[0]}, which a {target} kernel cannot have; remove it, or run the "
            "kernel with interpret=True"
        )
