"""`jax.experimental.hijax`: types and primitives of one's own, which may be defined but not used yet.

Flax defines its own when it is imported; only `nnx.Variable(..., hijax=True)` uses them.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xlamini.as_jax.missing_names import fall_through
from xlamini.as_jax.overlay.refusals import refuse
from xlamini.core.avals import ShapedArray as ShapedArray
from xlamini.core.ref_cells import AbstractRef as AbstractRef
from xlamini.extend import Zero as Zero, instantiated as instantiate_zeros, is_linear as is_undefined_primal

__getattr__ = fall_through(__name__)

AbstractValue = ShapedArray


class HiPrimitive:
    """A primitive on values of one's own types."""

    def __init__(self, name: str):
        self.name = name

    def bind(self, *operands: Any, **params: Any) -> Any:
        refuse(f"hijax: the primitive {self.name!r}", "write a function of pytrees of arrays")


class HiType:
    """A type of one's own."""

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        refuse(f"hijax: the type {cls.__qualname__!r}", "register the class as a pytree node")


class MutableHiType(HiType):
    """A type of one's own whose values change."""


class VJPHiPrimitive(HiType):
    """A primitive with a rule for `vjp`."""


class AvalQDD(HiType):
    """A type with quasi-dynamic data."""


class AvalMutableQDD(HiType):
    """A type with quasi-dynamic data that changes."""


def register_hitype(value_type: type, type_of: Callable[..., Any]) -> None:
    """Nothing to note: no value of the class becomes a traced one, as its types cannot be made."""


class _AllowedEffects:
    def add_type(self, effect: type) -> None:
        """Nothing to note: the primitives that have the effect cannot be used."""


control_flow_allowed_effects = _AllowedEffects()


class aval_property:
    """A property of traced values, by their type."""

    def __init__(self, fget: Callable[..., Any]):
        self.fget = fget


class aval_method:
    """A method of traced values, by their type."""

    def __init__(self, fun: Callable[..., Any]):
        self.fun = fun
