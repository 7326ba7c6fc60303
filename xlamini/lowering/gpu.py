"""Whether a program is for an NVIDIA GPU; in a file of its own, as primitives import it and it imports no MLIR."""

from __future__ import annotations

from typing import TYPE_CHECKING

from xlamini.core.program.form import GPU_NAMES

if TYPE_CHECKING:
    from xlamini.lowering.context import Context


def is_gpu(ctx: Context) -> bool:
    """Whether the program is for an NVIDIA GPU."""
    return is_gpu_platform(ctx.platform)


def is_gpu_platform(platform: str) -> bool:
    """Whether a platform is NVIDIA GPUs, by its name or its alias."""
    return platform in GPU_NAMES
