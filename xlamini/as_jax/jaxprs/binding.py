"""The way in: `primitive.bind` takes JAX's params of an equation."""
from __future__ import annotations

from typing import Any

from xlamini.as_jax.jaxprs.params import TABLE
from xlamini.core.primitive import Primitive


def take_jax_params(primitive: Primitive) -> None:
    """Make the primitive's `bind` take JAX's params, if they differ from its own."""
    row = TABLE.get(primitive.name)
    if row is None:
        return
    bind, is_jax = primitive.bind, row.is_jax

    def bind_either(*operands: Any, **params: Any) -> Any:
        if not is_jax(params):
            return bind(*operands, **params)
        other = row.meant(params) if row.meant is not None else None
        return bind(*operands, **row.back(params)) if other is None else other(*operands)

    primitive.bind = bind_either
