"""fwd_and_bwd: the two passes of reverse mode as two functions, each compiled once."""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from xlamini.core import unflatten
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.core.program.avals import is_several
from xlamini.core.wrapping import wraps
from xlamini.staging import check_callable, jit, name_of
from xlamini.transforms.derivatives.diff_args import Argnums, DiffArgs
from xlamini.transforms.derivatives.vjp import VJP, vjp


def fwd_and_bwd(
    fun: Callable[..., Any], argnums: Argnums, has_aux: bool = False, jitted: bool = True
) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """The functions `fwd` and `bwd` of the forward and the backward pass of `fun`.

    `fwd(*args)` returns `(output, residuals)`, with `has_aux` `(output, residuals, aux)`; `bwd(residuals, cotangent)`
    returns the cotangents of the arguments `argnums`, a tuple if `argnums` is one. The pullback of `vjp` is a new
    function for each call; `bwd` is compiled once for all calls. With `jitted=False` neither is compiled as a whole.
    Raises TypeError for arguments, residuals or a cotangent of the wrong type.

    >>> fwd, bwd = fwd_and_bwd(lambda x, y: x * y, argnums=(0, 1))
    >>> out, residuals = fwd(2.0, 3.0)
    >>> bwd(residuals, 1.0)
    (Array(3., dtype=float32, weak_type=True), Array(2., dtype=float32, weak_type=True))
    """
    check_callable("fwd_and_bwd", fun)
    name, single = name_of(fun), not is_several(argnums)

    @api_boundary
    @wraps(fun)
    def fwd(*args: Any, **kwargs: Any) -> Any:
        diff = DiffArgs(fun, argnums, args, kwargs, "fwd_and_bwd")
        of_chosen = wraps(fun)(lambda *chosen: diff.of_chosen(*chosen))
        return vjp(of_chosen, *unflatten(diff.tree, diff.leaves), has_aux=has_aux)

    @api_boundary
    def bwd(residuals: Any, cotangent: Any) -> Any:
        if not isinstance(residuals, VJP):
            raise TypeError(
                f"fwd_and_bwd: the first argument of the backward pass of {name} must be the residuals, the second of "
                f"what its forward pass returns, but it is of type {type(residuals).__name__}"
            )
        cts = residuals(cotangent)
        return cts[0] if single else cts

    return (jit(fwd), jit(bwd)) if jitted else (fwd, bwd)
