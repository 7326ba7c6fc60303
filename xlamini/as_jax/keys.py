"""What libraries keep in tables or ask for by identity: it stands for nothing in a program of xlamini."""
from __future__ import annotations

from typing import Final

from xlamini.core.program.primitive import Primitive

call_p: Final = Primitive("call")
closed_call_p: Final = Primitive("closed_call")
get_p: Final = Primitive("get")
swap_p: Final = Primitive("swap")
empty2_p: Final = Primitive("empty2")
ragged_all_to_all_p: Final = Primitive("ragged_all_to_all")


UnspecifiedValue: Final = type(None)
UNSPECIFIED = None
"""The sharding that nobody gave, and its class."""


class EffectTypes(set[type]):
    """Classes of effects; programs here take effects of all classes in all places."""

    def add_type(self, effect_type: type) -> None:
        self.add(effect_type)

    def contains(self, effect: object) -> bool:
        return True


control_flow_allowed_effects: Final = EffectTypes()
lowerable_effects: Final = EffectTypes()
remat_allowed_effects: Final = EffectTypes()
custom_derivatives_allowed_effects: Final = EffectTypes()
