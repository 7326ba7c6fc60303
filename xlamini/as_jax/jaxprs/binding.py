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
        meant, own = row.bound(params) if row.bound is not None else None, row.back(params)
        return bind(*operands, **own) if meant is None or meant is primitive else meant.bind(*operands, **own)

    primitive.bind = bind_either
