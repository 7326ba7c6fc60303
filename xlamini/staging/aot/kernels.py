"""`Compiled.kernels`: the kernels of one's own in a compiled program, and what the target's compiler made of them."""
from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from xlamini.core import Jaxpr
from xlamini.runtime.kernels.bundles import TpuCode, shown_bundles
from xlamini.runtime.kernels.calls import TPU_CALL, KernelCall, kernel_calls
from xlamini.runtime.kernels.gpu import gpu_codes
from xlamini.runtime.kernels.ptx import GpuCode
from xlamini.runtime.kernels.tpu import tpu_codes
from xlamini.runtime.meshes.program_placement import devices_of
from xlamini.runtime.targets.topology import Target, target_of
from xlamini.runtime.targets.tpu_chips import CHIPS, shown, slices
from xlamini.staging.aot.kernel_costs import KernelCost, kernels_in
from xlamini.staging.aot.kernel_times import KernelTime, kernel_time
from xlamini.staging.compile.compile_request import CompileRequest


class OwnKernel(NamedTuple):
    """A kernel of one's own in a compiled program; it prints as a table of one row."""

    name: str
    grid: tuple[int, ...]
    target: str
    """The target that the program was compiled for, or the kind of the device that is here."""
    line: str
    """The user's file and line of the call."""
    lines: tuple[str, ...]
    """The user's lines that the kernel's operations are from."""
    dialect: str
    """The language of `module`: "Mosaic" for a TPU, "Triton" for a GPU."""
    module: str
    """The kernel as the target's compiler was given it."""
    code: TpuCode | GpuCode | None
    """What the target's compiler made of it: `TpuCode` or `GpuCode`; None if it wrote no dump."""
    time: KernelTime | None
    """A model of the run time of one call, and what it is made of; None for a device that is not a target."""

    def __str__(self) -> str:
        return str(KernelTable([self]))


class KernelTable(list[OwnKernel]):
    """The kernels of one's own in a program; its text is a table.

    >>> print(xlamini.jit(jnp.sin).lower(1.0).compile().kernels())
    no kernels for a TPU or a GPU
    """

    def __str__(self) -> str:
        if not self:
            return "no kernels for a TPU or a GPU"
        head = f"{len(self)} kernel{'s' * (len(self) > 1)} for {self[0].target}"
        rows = list(map(_cells, self))
        columns = list(dict.fromkeys(name for row in rows for name in row))
        return "\n".join([head, *table([columns, *([row.get(name, "") for name in columns] for row in rows)])])


class Question(NamedTuple):
    """A compiled program whose kernels are asked for."""

    request: CompileRequest
    target: Target | None
    options: Mapping[str, Any]

    @property
    def device(self) -> Any:
        """One of its devices."""
        return devices_of(self.request.device)[0]

    def known_target(self) -> Target | None:
        """The target, or the one like the device that is here."""
        return self.target or target_of(self.device) or _target_like(self.device)


def kernels_of(questions: Sequence[Question]) -> list[KernelTable]:
    """The kernels of each program, each compiled once more by itself for what the compiler says of it.

    The programs are for one and the same target, with the same options.
    """
    if all(each.request.device.platform == "cpu" for each in questions):
        return [KernelTable() for _ in questions]
    calls = [kernel_calls(each.request.module) for each in questions]
    every = [call for of_one in calls for call in of_one]
    if not every:
        return [KernelTable() for _ in questions]
    first, target = questions[0], questions[0].known_target()
    spec = target.name if target else first.device.device_kind
    codes = iter(_codes(every, first.device, spec, first.options))
    return [_rows(each, of_one, codes, target, spec) for each, of_one in zip(questions, calls, strict=True)]


def _rows(
    question: Question, calls: Sequence[KernelCall], codes: Iterator[Any], target: Target | None, spec: str
) -> KernelTable:
    costs = _costs(question.request.jaxpr)
    return KernelTable(_row(call, next(codes), costs, target, spec) for call in calls)


def _target_like(device: Any) -> Target | None:
    """The target of the same kind as a TPU that is here; None for a GPU that is here."""
    from xlamini.runtime.targets.topology import target  # which loads the compiler

    chip = next((chip for chip in CHIPS.values() if chip.kind == device.device_kind), None)
    return None if chip is None else target(f"tpu:{chip.name}:{shown(slices(chip)[0])}")


def _codes(calls: Sequence[KernelCall], device: Any, spec: str, options: Mapping[str, Any]) -> Sequence[Any]:
    kernels = [call.alone for call in calls]
    if calls[0].target == TPU_CALL:
        return tpu_codes(kernels, spec, options)
    return gpu_codes(kernels, device, options)


def _costs(jaxpr: Jaxpr) -> Callable[[str], KernelCost | None]:
    """Takes the kernels of a name in order; a module's names have no characters but letters, digits and _."""
    found: dict[str, list[KernelCost]] = defaultdict(list)
    for name, cost in kernels_in(jaxpr):
        found[_plain(name)].append(cost)

    def take(name: str) -> KernelCost | None:
        costs = found.get(_plain(name), [])
        return costs.pop(0) if len(costs) > 1 else costs[0] if costs else None

    return take


def _plain(name: str) -> str:
    return re.sub(r"\W", "_", name)


def _row(
    call: KernelCall, code: Any, costs: Callable[[str], KernelCost | None], target: Target | None, spec: str
) -> OwnKernel:
    cost, dialect = costs(call.name), "Mosaic" if call.target == TPU_CALL else "Triton"
    time = kernel_time(code, cost, target) if code and target else None
    return OwnKernel(call.name, call.grid, spec, call.source, call.lines, dialect, call.text, code, time)


def _cells(kernel: OwnKernel) -> dict[str, str]:
    """The cells of a kernel's row, by the names of columns."""
    grid = "x".join(map(str, kernel.grid)) or "1"
    first = {"name": kernel.name, "at": kernel.line.rpartition("/")[2], "grid": grid}
    last = {} if kernel.time is None else {"time": shown_seconds(kernel.time.seconds), "limit": kernel.time.limit}
    return {**first, **cells_of(kernel.code), **last}


def cells_of(code: TpuCode | GpuCode | None) -> dict[str, str]:
    """The figures of a kernel's code, by the names of columns."""
    if isinstance(code, TpuCode):
        units = {name: str(n) for name, n in code.units.items() if n and name in ("MATMUL", "VALU", "EUP", "XLU")}
        first = {"bundles": shown_bundles(code.bundles), "cycles": str(code.cycles), "spills": str(code.spills)}
        return {**first, "VMEM": shown_bytes(code.vmem), **units}
    if isinstance(code, GpuCode):
        used = {name: str(n) for name, n in code.counts.items() if n}
        first = {"threads": _known(code.threads), "registers": _known(code.registers and code.registers.count)}
        return {**first, "spills": _known(code.spills), "shared": shown_bytes(code.shared), **used}
    return {}


def _known(number: int | None) -> str:
    return "?" if number is None else str(number)


def shown_bytes(size: int | None) -> str:
    """A number of bytes in KiB."""
    return "?" if size is None else f"{math.ceil(size / 1024)} KiB"


def shown_seconds(seconds: float) -> str:
    """A time in microseconds."""
    return f"{seconds * 1e6:.3g} us"


def table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows of text as lines with columns, the first two to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [f"  {'  '.join(map(_padded, row, widths, range(len(row))))}".rstrip() for row in rows]


def _padded(cell: str, width: int, column: int) -> str:
    return cell.ljust(width) if column < 2 else cell.rjust(width)
