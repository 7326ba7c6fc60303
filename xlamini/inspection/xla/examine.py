"""Compile a lowered program for one target, and read what XLA says about it."""
from __future__ import annotations

from typing import TYPE_CHECKING

from xlamini.inspection.xla.examined import Examined

if TYPE_CHECKING:
    from xlamini.runtime.targets.topology import Target
    from xlamini.staging.aot.stages import Lowered


def examine(lowered: Lowered, name: str, target: Target | None = None) -> Examined:
    """The program compiled for a target, or for the devices it was lowered for, and all that XLA says about it.

    The disk cache is neither read nor written. What cannot be read makes that part alone unavailable.

    Args:
      lowered: `jit(f).lower(…)`.
      name: the target's name in the report, such as "here".
      target: the device to compile for, from `xlamini.target`; None for the program's own devices.

    Raises:
      PlatformError: a program with Python callbacks, and a target.
      JaxRuntimeError: XLA cannot compile it.
    """
    raise NotImplementedError


def unexamined(name: str, error: str) -> Examined:
    """The column of a target that cannot be compiled for, with the reason: what to install, or the compiler's error."""
    return Examined(name, error=error)
