"""The MLIR context of Triton's kernels, one for each thread."""
from __future__ import annotations

import threading
from typing import Any

import numpy as np
from jaxlib.mlir import ir
from jaxlib.triton import dialect as _triton

from xlamini.core import ShapedArray
from xlamini.lowering.kernels.context import KernelDialect
from xlamini.lowering.mlir import MODULES_PER_CONTEXT


class TritonDialect(KernelDialect):
    """An MLIR context with Triton's dialect, and its types."""

    array = "tensor"

    def __init__(self) -> None:
        super().__init__()
        _triton.register_dialect(self.context)

    def pointer(self, dtype: Any) -> ir.Type:
        """The type of a pointer to the elements of an array; bools are bytes in memory."""
        return self.pointer_to(self.element_type(np.dtype(np.int8) if dtype == np.bool_ else dtype))

    def pointer_to(self, element: ir.Type, shape: tuple[int, ...] = ()) -> ir.Type:
        """The type of a pointer, or of a tensor of pointers."""
        text = f"!tt.ptr<{element}>"
        return ir.Type.parse(f"tensor<{'x'.join(map(str, shape))}x{text}>" if shape else text, self.context)

    def with_shape(self, kind: ir.Type, shape: tuple[int, ...]) -> ir.Type:
        """The type of a tensor of the elements of another one, or of a scalar."""
        element = getattr(kind, "element_type", kind)
        return ir.Type.parse(f"tensor<{'x'.join(map(str, shape))}x{element}>", self.context) if shape else element

    def tensor(self, shape: tuple[int, ...], dtype: Any) -> ir.Type:
        """The type of a tensor, of a scalar if it has no dimensions."""
        return self.type(ShapedArray(shape, np.dtype(dtype)))


_local = threading.local()


def triton_dialect() -> TritonDialect:
    """This thread's context, replaced after as many modules as that of programs, because MLIR frees nothing."""
    current = getattr(_local, "dialect", None)
    if current is None or current.modules >= MODULES_PER_CONTEXT:
        current = _local.dialect = TritonDialect()
    current.modules += 1
    return current
