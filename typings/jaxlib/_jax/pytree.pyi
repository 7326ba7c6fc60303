"""Pytrees: the registry, treedefs, the keys of key paths."""

from collections.abc import Iterable
from typing import Any

from xlamini.core.jaxlib_types import (
    DictKey as DictKey,
    FlattenedIndexKey as FlattenedIndexKey,
    GetAttrKey as GetAttrKey,
    PyTreeDef as PyTreeDef,
    PyTreeRegistry as PyTreeRegistry,
    SequenceKey as SequenceKey,
)

def default_registry() -> PyTreeRegistry: ...
def all_leaves(registry: PyTreeRegistry, leaves: Iterable[Any]) -> bool: ...
def treedef_tuple(registry: PyTreeRegistry, treedefs: list[Any]) -> PyTreeDef: ...
