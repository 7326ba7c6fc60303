"""What libraries keep in tables or ask for by identity: it stands for nothing in a program of xlamini."""
from __future__ import annotations

from xlamini.core.program.primitive import Primitive

call_p, closed_call_p = Primitive("call"), Primitive("closed_call")
get_p, swap_p = Primitive("get"), Primitive("swap")
empty2_p, ragged_all_to_all_p = Primitive("empty2"), Primitive("ragged_all_to_all")


UnspecifiedValue, UNSPECIFIED = type(None), None
"""The sharding that nobody gave, and its class."""


class EffectTypes(set[type]):
    """Classes of effects; programs here take effects of all classes in all places."""

    def add_type(self, effect_type: type) -> None:
        self.add(effect_type)

    def contains(self, effect: object) -> bool:
        return True


control_flow_allowed_effects, lowerable_effects = EffectTypes(), EffectTypes()
remat_allowed_effects, custom_derivatives_allowed_effects = EffectTypes(), EffectTypes()
