"""Frontend attributes: text by name on an operation, which XLA passes on to its passes and backends."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxlib.mlir import ir

_NAME = "mhlo.frontend_attributes"


def add_attributes(owner: Any, attributes: Sequence[tuple[str, str]]) -> None:
    """Add attributes to those that an operation has; a block, whose arguments have none, is left, and a constant."""
    if isinstance(owner, ir.Block) or owner.name == "stablehlo.constant":
        return
    context = owner.context
    before = {a.name: a.attr for a in owner.attributes[_NAME]} if _NAME in owner.attributes else {}
    more = {key: ir.StringAttr.get(value, context) for key, value in attributes}
    owner.attributes[_NAME] = ir.DictAttr.get({**before, **more}, context)
