"""What the library does with every primitive, and keeps of it: operations state nothing here.

`bind` makes equations of it. Its instance knows which rules were given to it from outside, and what was derived of it.
"""
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from xlamini.core import hooks
from xlamini.core.state import state

primitives: list[Any] = []
"""All primitives, in the order in which they were made."""


class Bindable:
    """The base of primitives."""

    name: str
    given: Mapping[str, Any] = {}
    """The rules that were given to this instance from outside of its class, by name (xlamini/extend)."""
    eager_only = False
    """Whether it has only an implementation in Python, so that no program with it can be compiled."""
    is_bound = False
    """Whether there has been an equation of it, from which rewrites may have been derived."""
    is_pure = True
    """Whether its traits include PURE; `Builder.emit` reads this for every equation."""
    expands = False
    """Whether its rule `expand` replaces its equations before lowering (interpreters/expand.py)."""
    higher_order = False
    """Whether its params contain jaxprs."""
    call_primitive = map_primitive = False
    """JAX's marks of older kinds of calls, of which there are none."""

    def __init__(self, name: str | None = None):
        if name is not None:
            self.name = name
        self.executables: dict[Any, Any] = {}
        primitives.append(self)
        hooks.primitive_made(self)

    def bind(self, *operands: Any, **params: Any) -> Any:
        """Apply the primitive: add an equation to the active builder, or evaluate eagerly without one."""
        builder = state.builder
        if builder is None:
            return hooks.evaluate(self, operands, params)
        return builder.emit(self, operands, params)

    def get_bind_params(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """The params that `bind` takes after an equation's operands, to evaluate the equation again."""
        return dict(params)

    def __repr__(self) -> str:
        return self.name
