"""Whether two blocks of MLIR do the same."""
from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir


def alike(first: ir.Block, second: ir.Block, same: dict[Any, Any] | None = None) -> bool:
    """Whether the operations of both are the same, on the same operands; `same` are values of both that are equal."""
    known = dict(same or {})
    known.update(zip(first.arguments, second.arguments, strict=False))
    pairs = list(zip(first.operations, second.operations, strict=False))
    if len(list(first.operations)) != len(list(second.operations)):
        return False
    return all(_same_operation(x.operation, y.operation, known) for x, y in pairs)


def _same_operation(x: ir.Operation, y: ir.Operation, known: dict[Any, Any]) -> bool:
    """The results of both are added to what is known to be equal."""
    same = (
        x.name == y.name
        and [known.get(v, v) for v in x.operands] == list(y.operands)
        and [v.type for v in x.results] == [v.type for v in y.results]
        and _attributes(x) == _attributes(y)
        and len(x.regions) == len(y.regions)
        and all(_same_region(a, b, known) for a, b in zip(x.regions, y.regions, strict=True))
    )
    known.update(zip(x.results, y.results, strict=False))
    return same


def _same_region(x: ir.Region, y: ir.Region, known: dict[Any, Any]) -> bool:
    return len(x.blocks) == len(y.blocks) and all(alike(a, b, known) for a, b in zip(x.blocks, y.blocks, strict=True))


def _attributes(operation: ir.Operation) -> dict[str, ir.Attribute]:
    return dict(operation.attributes.items())
