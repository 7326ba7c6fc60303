"""Messages that libraries' tests match: ours contain JAX's words, and go on with the argument and the fix."""
from __future__ import annotations

from typing import Any

import xlamini
from tests.support.error_rows import ones, row
from xlamini import grad, lax, numpy as jnp, vmap


def deleted() -> Any:
    x = ones(3)
    x.delete()
    return x


@xlamini.custom_vjp
def ruled(x: Any) -> Any:
    return x


ruled.defvjp(lambda x: (x, None), lambda _, ct: (ct,))


def assigned() -> None:
    ones(3)[0] = 1.0


ROWS = [
    row("broadcasting", lambda: ones(3) + ones(4), ValueError, "Incompatible shapes for broadcasting"),
    row("where", lambda: jnp.where(ones(3) > 0, ones(4), 0), ValueError, "Incompatible shapes for broadcasting"),
    row("broadcast_shapes", lambda: jnp.broadcast_shapes((3,), (4,)), ValueError, "Incompatible shapes for"),
    row("lax.broadcast_shapes", lambda: lax.broadcast_shapes((3,), (4,)), ValueError, "Incompatible shapes for"),
    row("backend", lambda: xlamini.devices("foo"), RuntimeError, "Unknown backend foo"),
    row(
        "branch trees", lambda: lax.cond(True, lambda: 1.0, lambda: (2.0,)), TypeError,
        "cond branch outputs must have the same pytree structure",
    ),
    row(
        "branch types", lambda: lax.switch(1, [lambda: 1.0, lambda: ones(3)]), TypeError,
        "switch branches must have equal output types but they differ",
    ),
    row(
        "carry types", lambda: lax.scan(lambda c, x: (ones(3), x), 0.0, ones(3)), TypeError,
        "scan body function carry input and carry output must have equal types",
    ),
    row(
        "carry trees", lambda: lax.while_loop(lambda c: True, lambda c: (c, c), 0.0), TypeError,
        "while_loop body function carry input and carry output must have the same pytree structure",
    ),
    row("grad of a vector", lambda: grad(jnp.sin)(ones(3)), TypeError, "Gradient only defined for scalar-output"),
    row("grad of ints", lambda: grad(jnp.sin)(1), TypeError, "grad requires real- or complex-valued inputs"),
    row("grad to ints", lambda: grad(lambda x: 3)(1.0), TypeError, "grad requires real-valued outputs"),
    row("vmap", lambda: vmap(jnp.add)(ones(3), ones(4)), ValueError, "vmap got inconsistent sizes for array axes"),
    row(
        "reverse mode", lambda: grad(lambda x: lax.while_loop(lambda c: c < 3, lambda c: c + x, x))(1.0), ValueError,
        "Reverse-mode differentiation does not work for lax.while_loop",
    ),
    row(
        "forward mode", lambda: xlamini.jvp(ruled, (1.0,), (1.0,)), TypeError,
        "can't apply forward-mode autodiff (jvp) to a custom_vjp function",
    ),
    row("assignment", assigned, TypeError, "arrays are immutable and do not support in-place item assignment"),
    row("deleted", lambda: deleted() + 1, RuntimeError, "Array has been deleted"),
    row("leaves", lambda: xlamini.tree.unflatten(xlamini.tree.structure([1, 2]), [1]), ValueError, "Too few leaves"),
]
