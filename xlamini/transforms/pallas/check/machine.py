"""The machine that runs a kernel: where it is, and the error that names this place."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from xlamini.core.errors.kernel_errors import KernelCheckError
from xlamini.core.program.kernels import Kernel
from xlamini.transforms.pallas.check.order import Order
from xlamini.transforms.pallas.check.params import InterpretParams


class Machine:
    """The program that runs, `ids` and `number`, the equation at which it is, and the lines that wrote memory.

    `copies` are those that run, by semaphore.
    """

    kernel: Kernel
    order: Order
    params: InterpretParams

    def __init__(self, kernel: Kernel, params: InterpretParams):
        self.kernel, self.params, self.order = kernel, params, Order(kernel, params)
        self.ids: tuple[int, ...] = ()
        self.number: int = 0
        self.eqn: Any = None
        self.lines: list[str] = []
        self.copies: dict[Any, list[Any]] = {}

    def start(self, ids: Sequence[int]) -> None:
        """Go to the beginning of a program."""
        self.ids, self.number, self.eqn = tuple(ids), self.order.number(ids), None

    @property
    def place(self) -> str:
        """The user's line."""
        return self.eqn.provenance.describe() if self.eqn is not None else ""

    def line_number(self) -> int:
        """The number of the user's line among those that wrote memory."""
        place = self.place
        if not self.lines or self.lines[-1] != place:
            self.lines.append(place)
        return len(self.lines) - 1

    def fail(self, ref: Any, what: str, program: tuple[int, ...] | None = None, place: str | None = None) -> NoReturn:
        """Raise the error about a ref, in the current program and at the current line unless others are given."""
        program, place = self.ids if program is None else program, self.place if place is None else place
        at = f", at {place}" if place else ""
        raise KernelCheckError(f"kernel {self.kernel.name}, program {program}: {what}{at}", program, ref, place)

    def conflicts(self, other: int) -> bool:
        """Whether another program, by its number, may run at the same time as the current one."""
        return other >= 0 and other != self.number and self.order.is_unordered(other, self.number)
