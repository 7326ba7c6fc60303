"""Primitives of users and of libraries: made by name, with rules that are given one by one."""
from __future__ import annotations

import sys
from typing import Any, NoReturn

from xlamini.core import Params, Primitive as CorePrimitive
from xlamini.core.caching.structure import Identity, hashable
from xlamini.core.errors import MissingRule
from xlamini.core.program.primitive import PURE
from xlamini.core.tracing.state import state
from xlamini.staging import jit

HOW = {
    "shape_rule": "shape_rule", "jvp": "jvp_rule", "transpose": "transpose_rule", "batch": "batch_rule",
    "lower": "expand_rule", "cost": "cost_rule", "next_derivative": "next_derivative",
}  # fmt: skip
"""What gives the rule that a program misses."""


class Primitive(CorePrimitive):
    """A primitive whose rules are given one by one, in any order: `@extend.jvp_rule(p)`.

    `multiple_results`: rules return lists of results. `pure`: its rules depend on nothing but the types of the operands
    and the params, which can be hashed; then each rule runs once for all equations alike. Without `pure` it runs for
    each equation, and params may be anything.

    >>> from xlamini import extend
    >>> twice_p = extend.Primitive("twice")
    >>> @extend.shape_rule(twice_p)
    ... def _(x):
    ...     return x
    >>> @extend.expand_rule(twice_p)
    ... def _(x):
    ...     return x + x
    >>> twice_p.bind(2.0)
    Array(4., dtype=float32, weak_type=True)
    """

    is_pure: bool

    def __init__(self, name: str, *, multiple_results: bool = False, pure: bool = False):
        if not isinstance(name, str):
            raise TypeError(f"Primitive: name must be a string, got {name!r}")
        super().__init__(name)
        self.multiple_results = multiple_results
        self.traits, self.is_pure = (PURE if pure else 0), pure
        self.__module__ = sys._getframe(1).f_globals.get("__name__", "__main__")

    def bind(self, *operands: Any, **params: Any) -> Any:
        """Apply it: as an equation of the program being traced, or now, by its implementation or compiled."""
        if state.builder is not None:
            return super().bind(*operands, **params)
        implementation = self.given.get("implementation")
        if implementation is not None:
            return implementation.rule(*operands, **params)
        return super().bind(*operands, **params) if _can_be_hashed(params) else self._bound_once(operands, params)

    def _bound_once(self, operands: Any, params: Params) -> Any:
        """The results by a program of this call alone."""

        def equation(*tracers: Any) -> Any:
            return self.bind(*tracers, **params)

        equation.__name__ = self.name
        return jit(equation)(*operands)

    def _missing(self, rule: str, signature: str) -> NoReturn:
        how = HOW.get(rule, f"{rule}_rule")
        raise MissingRule(
            f"primitive '{self.name}' has no {rule} rule; give it one: @extend.{how}(p) above a function with the "
            "signature in docs/extending.md"
        )


def _can_be_hashed(params: Params) -> bool:
    return not any(type(hashable(value)) is Identity for value in params.values())
