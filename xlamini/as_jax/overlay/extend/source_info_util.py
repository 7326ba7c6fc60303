"""`jax.extend.source_info_util`: the user's line of an equation, and the names of scopes around it."""
from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, Final

from xlamini.as_jax.missing_names import fall_through
from xlamini.core.errors.frames import hide_file as register_exclusion
from xlamini.core.program.jaxpr import Provenance as SourceInfo
from xlamini.core.tracing.state import state

__getattr__: Final = fall_through(__name__)


class NameStack(tuple[str, ...]):
    """The names of scopes, outermost first."""

    __slots__ = ()

    @property
    def stack(self) -> tuple[str, ...]:
        return self

    def extend(self, name: str) -> NameStack:
        return NameStack((*self, name))

    def __add__(self, other: Any) -> NameStack:
        return NameStack((*self, *_names(other)))

    def __str__(self) -> str:
        return "/".join(self)


def _names(stack: Any) -> tuple[str, ...]:
    """The names of a stack, which equations have as one text."""
    return tuple(filter(None, stack.split("/") if isinstance(stack, str) else stack))


def new_name_stack(name: str = "") -> NameStack:
    """The stack of one name, or of none."""
    return NameStack((name,) if name else ())


def current_name_stack() -> NameStack:
    """The names of the scopes that are open in this thread."""
    return NameStack(state.scope)


def new_source_info() -> SourceInfo:
    """That of an equation without a line."""
    return SourceInfo(None)


def current() -> SourceInfo:
    """What an equation made now would say of where it comes from."""
    return SourceInfo(None, tuple(state.scope)) if state.builder is None else state.builder.here()


@contextmanager
def set_name_stack(name_stack: Any) -> Generator[None, None, None]:
    """Let equations made inside have these scopes alone."""
    before, state.scope = state.scope, _names(name_stack)
    try:
        yield
    finally:
        state.scope = before


def extend_name_stack(name: str) -> Any:
    """Let equations made inside have one scope more."""
    return set_name_stack(current_name_stack().extend(name))


transform_name_stack = extend_name_stack


def reset_name_stack() -> Any:
    """Let equations made inside have no scope."""
    return set_name_stack(())


@contextmanager
def user_context(traceback: Any, *, name_stack: Any = None) -> Generator[None, None, None]:
    """Let equations made inside have the scopes of `name_stack`; their lines are the user's own anyway."""
    with set_name_stack(current_name_stack() if name_stack is None else name_stack):
        yield


def summarize(source_info: SourceInfo) -> str:
    """The user's line of an equation, and the rewrites that led to it."""
    return source_info.describe()
