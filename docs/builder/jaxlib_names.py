"""Texts for the public classes that are jaxlib's own: its C++ has no docstrings, and takes none from Python."""

from __future__ import annotations

from typing import Any

TEXTS = {
    "Buffer": "An operand or a result of a callback: its `shape`, `dtype`, `ndim`, and whether it is `writeable`.",
    "DictKey": "The step of a path from a dict to its value at `key`.",
    "ExecutionContext": "What XLA tells a callback of its call: the `stage`, and on a GPU the `stream`.",
    "FlattenedIndexKey": "The step of a path to a child that has no name: its number, `key`.",
    "GetAttrKey": "The step of a path from an object to its attribute `name`.",
    "JaxRuntimeError": "An error that XLA or PJRT raises, with its text, such as too little memory. A RuntimeError.",
    "NamedSharding": "How an array lies on a mesh: a PartitionSpec names an axis, or none, for each dimension.",
    "ProfileOptions": "What a profile records: `host_tracer_level`, `python_tracer_level` and others, as attributes.",
    "PyTreeRegistry": "The classes that are nodes of pytrees, and how each is flattened.",
    "PyTreeDef": "The structure of a pytree without its leaves: what `tree.structure` returns.",
    "SequenceKey": "The step of a path from a list or tuple to its element `idx`.",
    "Sharding": "The base class of all shardings: how the parts of an array are assigned to devices.",
    "SingleDeviceSharding": "All of an array on one device.",
}


def text_of(member: Any) -> str:
    """The text for a class or an instance of it; empty if there is none."""
    cls = member if isinstance(member, type) else type(member)
    return TEXTS.get(cls.__name__, "")
