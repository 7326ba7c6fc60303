"""What devices did in a trace: runs of kernels, and copies between memories. Times are in nanoseconds."""
from __future__ import annotations

from typing import NamedTuple

Program = tuple[str, str, str]
"""What a trace knows a program by: the process, the name of its module, and its number."""
Segment = tuple[Program, str]
"""A program, and the number of a call of it."""


class KernelRun(NamedTuple):
    """One run of a kernel. `program` is the name of its `module` with a number, `jit_step(3)`, as XLA writes it.

    Without a number it is the name. `call` is the same for all kernels of one call of a program. `opcode` is that of
    its instruction, where the trace says so. `process` is that which recorded it, where there are several.
    """

    module: str
    program: str
    kernel: str
    device: str
    call: str
    start: float
    end: float
    opcode: str = ""
    process: str = ""

    @property
    def seconds(self) -> float:
        return (self.end - self.start) * 1e-9

    @property
    def of(self) -> Program:
        return self.process, self.module, self.program

    @property
    def segment(self) -> Segment:
        return self.of, self.call


class Transfer(NamedTuple):
    """One copy by a device. `direction` is "H2D", from the host, "D2H", to it, "D2D", "P2P", between devices, …"""

    device: str
    direction: str
    bytes: int
    start: float
    end: float
    process: str = ""

    @property
    def seconds(self) -> float:
        return (self.end - self.start) * 1e-9
