"""The question of a compiled program for its kernels, of `pallas_call`, and how programs are compiled once more."""
from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from xlamini.core import api_boundary_methods
from xlamini.runtime.execution.executable import CompilerOptions
from xlamini.staging.compile.compile_request import CompileRequest
from xlamini.staging.compile.program import Program, compile_lowered

if TYPE_CHECKING:
    from xlamini.staging.aot.kernels import KernelTable, Question


class Anew(NamedTuple):
    """How a compiled function is compiled once more."""

    lowered: Callable[[], CompileRequest]
    options: CompilerOptions | None

    def __call__(self) -> Program:
        return compile_lowered(self.lowered(), self.options)


class KernelQueries:
    """What compiled functions say of their kernels."""

    _program: Program
    _anew: Anew | None
    """None for a program that was loaded from a file."""
    _kernels: KernelTable | None = None

    def kernels(self) -> KernelTable:
        """The kernels of one's own, of `pallas_call`: what the target's compiler made of each; it prints as a table.

        A row has the kernel's grid, the user's lines, its module (Mosaic or Triton), and its code: for a TPU the VLIW
        bundles by loop depth, spills, the units used and VMEM; for a GPU PTX, counts of its instructions, registers,
        spills and shared memory. No device is needed. The first call compiles each kernel once more, for a TPU in a
        child process; on a CPU, where a kernel runs as a scan over its grid, there are none.

        Raises ValueError for a program that was loaded from a file, PlatformError if the compiler is not installed or
        takes too long.

        >>> v5e = xlamini.target("tpu:v5e:2x2")  # doctest: +SKIP
        >>> print(xlamini.jit(norm).lower(x, gain).compile(target=v5e).kernels())  # doctest: +SKIP
        1 kernel for tpu:v5e:2x2
          name  at           grid  bundles  cycles  spills     VMEM  XLU  VALU  EUP     time   limit
          norm  norms.py:14   512    11/91   46785       0   68 KiB    9    70    2  31.2 us  bundles
        """
        read_kernels([self])
        assert self._kernels is not None
        return self._kernels

    def _question(self) -> Question:
        from xlamini.staging.aot.kernels import Question

        if self._anew is None:
            raise ValueError("kernels: the program was loaded from a file; ask where it is compiled")
        target = getattr(self._program.executable, "target", None)
        return Question(self._anew.lowered(), target, self._anew.options or {})


def read_kernels(every: Sequence[KernelQueries]) -> None:
    """Read the kernels of several programs for one target at once, which takes one child process for a TPU."""
    asked = [each for each in every if each._kernels is None]
    if not asked:
        return
    from xlamini.staging.aot.kernels import kernels_of  # for those who look only

    for each, kernels in zip(asked, kernels_of([each._question() for each in asked]), strict=True):
        each._kernels = kernels


api_boundary_methods(KernelQueries)
