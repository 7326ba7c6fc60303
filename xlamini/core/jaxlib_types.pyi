"""What a type checker sees of jaxlib's classes that the core's types name.

jaxlib's compiled modules have no stubs in its wheel. A public type that named such a class would be unknown to users'
type checkers, and so would every type that names that type.
"""

from typing import Any
class Compiled:
    """An object of a compiled class, whose attributes jaxlib or Python sets; those not declared have any type."""

    def __init__(self, *args: Any, **kwargs: Any) -> None: ...
    def __getattr__(self, name: str) -> Any: ...
    def __setattr__(self, name: str, value: Any) -> None: ...

class Config(Compiled):
    """A cell of configuration that C++ dispatch reads."""

    name: str
    value: Any

    def set_global(self, value: Any) -> None: ...
    def set_local(self, value: Any) -> None: ...
    def swap_local(self, value: Any) -> Any: ...

class JaxRuntimeError(RuntimeError): ...

class PyTreeRegistry(Compiled): ...

class PyTreeDef(Compiled):
    num_leaves: int
    num_nodes: int
    def children(self) -> list[PyTreeDef]: ...
    def flatten_up_to(self, tree: Any) -> list[Any]: ...
    def unflatten(self, leaves: Any) -> Any: ...
    @staticmethod
    def from_node_data_and_children(registry: Any, node_data: Any, children: Any) -> PyTreeDef: ...

class DictKey(Compiled):
    key: Any

class FlattenedIndexKey(Compiled):
    key: int

class GetAttrKey(Compiled):
    name: str

class SequenceKey(Compiled):
    idx: int
