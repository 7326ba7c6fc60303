"""Structural equality of MLIR blocks."""
from __future__ import annotations

from typing import Any

from jaxlib.mlir import ir


def equal_blocks(first: ir.Block, second: ir.Block, same: dict[Any, Any] | None = None) -> bool:
    """Whether two blocks have equal operations on equal operands; `same` maps values of the first to the second's."""
    known = dict(same or {})
    known.update(zip(first.arguments, second.arguments, strict=False))
    pairs = list(zip(first.operations, second.operations, strict=False))
    if len(list(first.operations)) != len(list(second.operations)):
        return False
    return all(_equal_operations(x.operation, y.operation, known) for x, y in pairs)


def _equal_operations(x: ir.Operation, y: ir.Operation, known: dict[Any, Any]) -> bool:
    """Whether two operations are equal; their results are added to `known`, the map of equal values."""
    same = (
        x.name == y.name
        and [known.get(v, v) for v in x.operands] == list(y.operands)
        and [v.type for v in x.results] == [v.type for v in y.results]
        and _attributes(x) == _attributes(y)
        and len(x.regions) == len(y.regions)
        and all(_equal_regions(a, b, known) for a, b in zip(x.regions, y.regions, strict=True))
    )
    known.update(zip(x.results, y.results, strict=False))
    return same


def _equal_regions(x: ir.Region, y: ir.Region, known: dict[Any, Any]) -> bool:
    if len(x.blocks) != len(y.blocks):
        return False
    return all(equal_blocks(a, b, known) for a, b in zip(x.blocks, y.blocks, strict=True))


def _attributes(operation: ir.Operation) -> Any:
    """The attributes; of a constant of complex numbers, for which the bindings have no class, the text."""
    try:
        return dict(operation.attributes.items())
    except TypeError:
        return str(operation.get_asm(use_local_scope=True)).partition("=")[2]
