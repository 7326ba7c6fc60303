"""The MLIR context of Mosaic kernels: one for each thread, replaced now and then, as that of programs is."""
from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _tpu_ext

from xlamini.lowering.kernels.context import KernelDialect
from xlamini.lowering.mlir import MODULES_PER_CONTEXT

_SPACES = {"vmem": "vmem", "smem": "smem", "any": "any", "hbm": "hbm"}
"""Mosaic's names of the memories of a TPU."""

SEMAPHORES = {"semaphore": "!tpu.semaphore", "dma_semaphore": "!tpu.dma_semaphore"}
"""The types of semaphores, which have a memory of their own."""


class MosaicDialect(KernelDialect):
    """An MLIR context with the dialect `tpu`, whose arrays are vectors."""

    array = "vector"

    def __init__(self) -> None:
        super().__init__()
        _tpu_ext.register_dialect(self.context)

    def vector(self, shape: Sequence[int], element: ir.Type) -> ir.Type:
        """The type of a vector; of no dimensions, that of a scalar."""
        return ir.VectorType.get(list(shape), element, loc=self.unknown) if len(shape) else element

    def memory(self, shape: Sequence[int], dtype: np.dtype, space: str) -> ir.Type:
        """The type of a buffer; bools are int32s in memory."""
        element = SEMAPHORES.get(space) or str(self.memory_element(dtype))
        text, name = "x".join([*map(str, shape), element]), _SPACES.get(space, "semaphore_mem")
        return ir.Type.parse(f"memref<{text}, #tpu.memory_space<{name}>>", self.context)

    def memory_element(self, dtype: np.dtype) -> ir.Type:
        """The type of an element in memory."""
        return self.element_type(np.dtype(np.int32) if dtype == np.bool_ else dtype)


_local = threading.local()


def mosaic_dialect() -> MosaicDialect:
    """This thread's context for Mosaic kernels, replaced after MODULES_PER_CONTEXT modules."""
    current = getattr(_local, "dialect", None)
    if current is None or current.modules >= MODULES_PER_CONTEXT:
        current = _local.dialect = MosaicDialect()
    current.modules += 1
    return current
