"""Public modules whose parts are imported when they are first named, so that a program pays for what it uses."""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from xlamini.core.api_boundary import make_edge

NOTHING: Mapping[str, str] = {}


def lazy_parts(
    namespace: dict[str, Any], modules: Sequence[str] = (), members: Mapping[str, str] = NOTHING
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a package, whose `globals()` are `namespace`, for parts that are not there yet.

    `modules` are modules of it; `members` says for each function where it is written: `{"unique": "sets.unique"}`. No
    such module may be called like a member: importing it would put the module in the function's place.
    """
    package = namespace["__name__"]

    def find(name: str) -> Any:
        if name in modules:
            return import_module(f"{package}.{name}")
        if name not in members:
            raise AttributeError(f"module '{package}' has no attribute {name!r}")
        module, _, member = members[name].rpartition(".")
        namespace[name] = getattr(import_module(f"{package}.{module}"), member)
        make_edge(namespace, name)
        return namespace[name]

    def names() -> list[str]:
        return sorted({*namespace, *modules, *members})

    return find, names
