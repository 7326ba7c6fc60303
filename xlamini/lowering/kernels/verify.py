"""Whether MLIR takes the module of a kernel."""
from __future__ import annotations

from jaxlib.mlir import ir

from xlamini.core.errors.kernel_errors import KernelError
from xlamini.core.program.kernels import Kernel


def verify(kernel: Kernel, module: ir.Module, target: str) -> None:
    """KernelError for a module that is not valid, with what MLIR says of it."""
    try:
        module.operation.verify()
    except ir.MLIRError as error:
        raise KernelError(f"pallas_call: {kernel.name} is no valid kernel for a {target}: {error}") from None
