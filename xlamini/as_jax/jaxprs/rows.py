"""A row of the table of params, and how most rows are made."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from xlamini.core.avals import Avals, Params


class Row(NamedTuple):
    """The params of a primitive: `out` to JAX's, for operands of these types, `back`, and whether params are JAX's."""

    out: Callable[[Params, Avals], Params]
    back: Callable[[Params], Params]
    is_jax: Callable[[Params], bool]
    meant: Callable[[Params], Callable[..., Any] | None] | None = None
    """What these params of JAX's bind in place of the primitive; None for the primitive itself."""


def more(own: Mapping[str, Any] | None = None, dropped: Mapping[str, Any] | None = None, **jax: Any) -> Row:
    """A row of params that differ in the presence of keys.

    `jax`: what JAX has more, with its usual value; `own`: what xlamini has more, left out where it is this value;
    `dropped`: what xlamini has more and no result depends on.
    """
    own, hints = own or {}, dropped or {}

    def out(params: Params, avals: Avals) -> Params:
        kept = {k: v for k, v in params.items() if not (k in hints or (k in own and v == own[k]))}
        return {**jax, **kept}

    def back(params: Params) -> Params:
        kept = {k: v for k, v in params.items() if not (k in jax and (v is jax[k] or v == jax[k]))}
        return {**hints, **own, **kept}

    if jax:
        return Row(out, back, lambda params: not jax.keys().isdisjoint(params))
    ours = {**own, **hints}.keys()
    return Row(out, back, lambda params: not ours <= params.keys())
