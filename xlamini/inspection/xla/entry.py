"""An examined program as an entry of the report's `targets`, with its stages: passes, optimized HLO, assembly."""
from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from xlamini.inspection.stages import stage_of
from xlamini.inspection.xla.facts import Buffer, Examined, ExchangedData, HloPass, ProgramText, XlaKernel
from xlamini.staging.aot.kernels import OwnKernel, cells_of, shown_seconds

RowOf = Callable[[str], int | None]
"""The row of the equation that has a label; None if there is none."""
WorkOf = Callable[[int], float]
"""The FLOPs plus the bytes of a row: in proportion to it, the equations of a kernel share its time."""
Stage = dict[str, Any]


def entry_of(
    found: Examined, row_of: RowOf, work_of: WorkOf, stages: list[Stage], target: int, of: int | None
) -> dict[str, Any]:
    """The entry of `targets` for a program; its stages are appended to `stages`.

    Args:
      found: the examined program.
      row_of: the row of the final jaxpr for a label.
      work_of: the FLOPs plus bytes of a row.
      stages: the report's stages, in order.
      target: the index that the entry will have in `targets`.
      of: the stage that was compiled, StableHLO; None if there is none.
    """
    before = of
    for each in found.passes:
        stages.append(_pass_stage(each, row_of, target, before))
        before = len(stages) - 1
    hlo = _added(stages, found.hlo, "hlo", row_of, target, before)
    return {
        "name": found.name,
        "platform": found.platform,
        "device": found.device,
        "devices": found.devices,
        "error": found.error,
        "unavailable": dict(found.unavailable),
        "seconds": {"lower": found.lower_seconds, "compile": found.compile_seconds},
        "cost": None if found.cost is None else found.cost._asdict(),
        "memory": None if found.memory is None else found.memory._asdict(),
        "prediction": found.prediction and dict(zip(("seconds", "source"), found.prediction, strict=True)),
        **({} if found.measured is None else {"measured": found.measured._asdict()}),
        "roof": None if found.roof is None else found.roof._asdict(),
        "kernels": [_kernel(each, row_of, work_of) for each in found.kernels],
        "own_kernels": list(map(_own_kernel, found.own_kernels)),
        "boundaries": [{**b._asdict(), "consumers": list(b.consumers)} for b in found.boundaries],
        "coverage": found.coverage and {**found.coverage._asdict(), "inserted": list(found.coverage.inserted)},
        "moments": [moment._asdict() for moment in found.moments],
        "buffers": [_with_row(each, row_of) for each in found.buffers],
        "collectives": [_with_row(each, row_of) for each in found.collectives],
        "hlo": hlo,
        "assembly": _added(stages, found.assembly, "assembly", row_of, target, hlo),
    }


def rows_of(labels: Iterable[str], row_of: RowOf) -> list[int]:
    """The rows of labels, in order, each once; labels without a row are left out."""
    return sorted({row for row in map(row_of, labels) if row is not None})


def _pass_stage(found: HloPass, row_of: RowOf, target: int, of: int | None) -> Stage:
    facts = {"rewrite": found.name, "changed": found.changed, "made": list(found.made), "gone": list(found.gone)}
    return _stage(found.text, "pass", row_of, target, of) | facts


def _added(
    stages: list[Stage], text: ProgramText | None, kind: str, row_of: RowOf, target: int, of: int | None
) -> int | None:
    """The index of the stage of a text, which is appended; None for no text."""
    if text is None:
        return None
    stages.append(_stage(text, kind, row_of, target, of))
    return len(stages) - 1


def _stage(text: ProgramText, kind: str, row_of: RowOf, target: int, of: int | None) -> Stage:
    known = {labels: rows_of(labels, row_of) for labels in set(text.labels)}
    rows = [list(known[labels]) for labels in text.labels]
    return stage_of(kind, text.title, list(text.lines), rows, text.count, target=target, of=of)


def _kernel(kernel: XlaKernel, row_of: RowOf, work_of: WorkOf) -> dict[str, Any]:
    shown = kernel._asdict()
    rows, measured = rows_of(shown.pop("labels"), row_of), shown.pop("measured")
    if measured is not None:
        shown["measured"] = measured._asdict()
    return {**shown, "rows": rows, "shares": _shares([*map(work_of, rows)])}


def _own_kernel(kernel: OwnKernel) -> dict[str, Any]:
    figures = cells_of(kernel.code)
    if kernel.time is not None:
        figures |= {"time": shown_seconds(kernel.time.seconds), "limit": kernel.time.limit}
    about = {"name": kernel.name, "line": kernel.line, "grid": list(kernel.grid), "lines": list(kernel.lines)}
    return {**about, "dialect": kernel.dialect, "module": kernel.module, "figures": figures}


def _shares(work: Sequence[float]) -> list[float]:
    """The share of each; equal ones where there is no work."""
    whole = sum(work)
    return [each / whole if whole else 1 / len(work) for each in work]


def _with_row(found: Buffer | ExchangedData, row_of: RowOf) -> dict[str, Any]:
    shown = found._asdict()
    label = shown.pop("label")
    return {**shown, "row": None if label is None else row_of(label)}
