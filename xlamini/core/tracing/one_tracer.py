"""Why there is nothing to derive from: one tracer class, and no stack of traces."""
from __future__ import annotations

from typing import Any, NoReturn

ONE_TRACER = (
    "xlamini has one tracer class and no stack of traces; write a transformation as a function of the jaxpr, "
    "xlamini.make_jaxpr(fun)(*args); see docs/dropin.md"
)


def seal(cls: type) -> None:
    """Let a subclass of Tracer be defined, as libraries for JAX do when they are imported, but not made."""
    type.__setattr__(cls, "__new__", _refuse)


def _refuse(cls: type, *args: Any, **kwargs: Any) -> NoReturn:
    raise TypeError(f"{cls.__qualname__}, a subclass of Tracer, cannot be used: {ONE_TRACER}")
