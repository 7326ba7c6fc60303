"""Side effects of equations.

An equation with an effect is never removed. Ordered effects of a program happen in the order of its equations: the
lowering threads a token through loops and branches. Unordered effects may happen in any order.
"""
from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple


class Effect(NamedTuple):
    """A kind of effect. A rewrite may repeat or drop an `observing` one, such as printing.

    >>> program = xlamini.make_jaxpr(lambda x: xlamini.debug.print("{}", x, ordered=True))(1.0)
    >>> program.effects
    frozenset({ordered debug})
    >>> Effect("log", ordered=True)
    ordered log
    """

    name: str
    ordered: bool = False
    observing: bool = False

    def __repr__(self) -> str:
        return f"{'ordered ' if self.ordered else ''}{self.name}"


class DebugEffect(Effect):
    """The effect of `debug.print` and `debug.callback`.

    >>> program = xlamini.make_jaxpr(lambda x: xlamini.debug.print("{}", x))(1.0)
    >>> [isinstance(effect, DebugEffect) for effect in program.effects]
    [True]
    """


class OrderedDebugEffect(Effect):
    """The effect of `debug.print` and `debug.callback` with `ordered=True`.

    >>> program = xlamini.make_jaxpr(lambda x: xlamini.debug.print("{}", x, ordered=True))(1.0)
    >>> [isinstance(effect, OrderedDebugEffect) for effect in program.effects]
    [True]
    """


io_effect: Final = Effect("IO")
ordered_io_effect: Final = Effect("IO", ordered=True)
debug_effect: Final = DebugEffect("debug", observing=True)
ordered_debug_effect: Final = OrderedDebugEffect("debug", ordered=True, observing=True)
ffi_effect: Final = Effect("FFI")


Effects = frozenset[Effect]
no_effects: Effects = frozenset()


def any_ordered(effects: Iterable[Effect]) -> bool:
    """Whether a token must be threaded through the lowering."""
    return any(effect.ordered for effect in effects)


def more_than_observing(effects: Iterable[Effect]) -> list[Effect]:
    """The effects that a rewrite may neither repeat nor drop."""
    return [effect for effect in effects if not effect.observing]
