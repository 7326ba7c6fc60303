"""Types of values that change, which libraries may derive from, but whose values cannot be traced."""
from __future__ import annotations

from typing import Any, NoReturn


class MutableHiType:
    """A type of one's own whose values change. It may be derived from, but there are no values of it: use refs."""

    is_high = has_qdd = True

    def __new__(cls, *args: Any, **kwargs: Any) -> NoReturn:
        raise NotImplementedError(
            f"values of the mutable type {cls.__qualname__} cannot be traced; keep what changes in a "
            "hijax.Box, or in refs (xlamini.new_ref)"
        )


class AvalQDD(MutableHiType):
    """A mutable type, with what is known of a value."""


class AvalMutableQDD(MutableHiType):
    """A mutable type, with what is known of a value and may change."""


class AllowedEffects:
    """The effects of primitives that loops and branches may contain; those of xlamini's refs are known already."""

    def add_type(self, effect: type) -> None:
        """Nothing is noted: only primitives on mutable types have such effects, and these have no values."""


control_flow_allowed_effects = AllowedEffects()
