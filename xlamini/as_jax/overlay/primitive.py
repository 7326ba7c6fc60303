"""`jax.extend.core.Primitive`: JAX's methods that give a primitive its rules, over the tables of xlamini.extend."""
from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any, NoReturn

from xlamini import extend
from xlamini.core.program.bindable import effects_of
from xlamini.core.program.primitive import Primitive as CorePrimitive

Rule = Callable[..., Any]

_HOW = {
    "shape_rule": "primitive.def_abstract_eval(rule)",
    "jvp": "jax.interpreters.ad.primitive_jvps[primitive] = rule",
    "transpose": "jax.interpreters.ad.primitive_transposes[primitive] = rule",
    "batch": "jax.interpreters.batching.primitive_batchers[primitive] = rule",
    "lower": "jax.interpreters.mlir.register_lowering(primitive, rule)",
}
"""What gives the rule that a program misses, in JAX's terms."""


class _EveryPrimitive(type(extend.Primitive)):
    """Makes the library's own primitives instances of the class below."""

    def __instancecheck__(cls, x: Any) -> bool:
        return isinstance(x, CorePrimitive) if cls is Primitive else super().__instancecheck__(x)


class Primitive(extend.Primitive, metaclass=_EveryPrimitive):
    """A primitive of a library; `multiple_results` is set after it is made.

    A subclass may define `impl` and `abstract_eval`, in place of giving them by `def_impl` and its kin.
    """

    is_effectful: None = None
    skip_canonicalization = False

    def __init__(self, name: str):
        super().__init__(name, multiple_results=type(self).multiple_results)
        self.__module__ = sys._getframe(1).f_globals.get("__name__", "__main__")
        if type(self).impl is not Primitive.impl:
            self.def_impl(self.impl)
        if type(self).abstract_eval is not Primitive.abstract_eval:
            self.def_effectful_abstract_eval(self.abstract_eval)

    def impl(self, *operands: Any, **params: Any) -> Any:
        """The results of arrays, by a compiled program if no other way was given."""
        given = self.given.get("implementation")
        return apply_primitive(self, *operands, **params) if given is None else given.rule(*operands, **params)

    def abstract_eval(self, *avals: Any, **params: Any) -> tuple[Any, Any]:
        """The results' types and the effects."""
        return self.shape_rule(*avals, **params), effects_of(self, avals, params)

    def def_impl(self, impl: Rule) -> Rule:
        """Give what computes the results of arrays when nothing is traced."""
        extend.implementation[self] = self.impl = impl
        return impl

    def def_abstract_eval(self, rule: Rule) -> Rule:
        """Give the rule that computes the results' types."""
        extend.shape_rule[self] = rule
        return rule

    def def_effectful_abstract_eval(self, rule: Rule) -> Rule:
        """Give the rule that computes the results' types and the effects, as a pair."""
        extend.shape_rule[self] = lambda *avals, **params: rule(*avals, **params)[0]
        extend.effects_rule[self] = lambda *avals, **params: rule(*avals, **params)[1]
        return rule

    def _missing(self, rule: str, signature: str) -> NoReturn:
        """NotImplementedError itself: programs written for JAX ask whether an error is of that very class."""
        if rule not in _HOW:
            super()._missing(rule, signature)
        raise NotImplementedError(f"primitive '{self.name}' has no {rule} rule; give it one: {_HOW[rule]}")

    def def_custom_bind(self, bind: Rule) -> Rule:
        """Replace `bind`."""
        self.bind = bind
        return bind


def apply_primitive(primitive: CorePrimitive, *operands: Any, **params: Any) -> Any:
    """The results of arrays, by a compiled program: what an implementation does for which there is no other."""
    return CorePrimitive.bind(primitive, *operands, **params)
