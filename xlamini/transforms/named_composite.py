"""composite: a named function that a compiler may replace by its own implementation.

It lowers to one `stablehlo.composite` operation with attributes, and with the function as its decomposition. A compiler
that does not recognize the name runs the decomposition; derivatives and vmap rewrite the decomposition too.
"""
from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, NamedTuple

import numpy as np

from xlamini.core import Jaxpr, flatten_from_user
from xlamini.core.errors.api_boundary import api_boundary
from xlamini.staging import ArgNames, avals_of, check_callable, name_of, rebuilt
from xlamini.staging.call.call import WholeCall
from xlamini.staging.trace.tracing import trace

Attributes = tuple[tuple[str, Any], ...]


def composite(decomposition: Callable[..., Any], name: str, version: int = 0) -> Callable[..., Any]:
    """The function `decomposition`, as an operation called `name` of StableHLO programs.

    Args:
      decomposition: takes arrays, or pytrees of them, and the attributes as keyword arguments.
      name: the name by which a compiler recognizes the operation, with a namespace: "my_library.op".
      version: the version of the operation's semantics.

    The result takes positional arguments for arrays, and keyword arguments for attributes: numbers, strings, ndarrays,
    and tuples of these; None is left out. TypeError for other attributes.

    >>> def norm(x, *, ord):
    ...     return (abs(x) ** ord).sum() ** (1 / ord)
    >>> composite(norm, "my_library.norm")(xlamini.numpy.ones(4), ord=2)
    Array(2., dtype=float32)
    """
    check_callable("composite: decomposition", decomposition)
    if not isinstance(name, str) or not name:
        raise TypeError(f"composite: name must be a string such as 'my_library.op', got {name!r}")

    @api_boundary
    def applied(*args: Any, **attributes: Any) -> Any:
        frozen = tuple((key, _frozen(name, key, v)) for key, v in attributes.items() if v is not None)
        leaves, in_tree = flatten_from_user((args, {}))
        names = ArgNames(decomposition, in_tree)
        avals = avals_of(leaves, names, name_of(decomposition))
        traced = trace(lambda *a: decomposition(*a, **attributes), in_tree, avals, None, names, name)
        params = {"name": name, "version": int(version), "attributes": frozen}
        outs = composite_p.bind(*traced.captured, *leaves, jaxpr=traced.jaxpr, **params)
        return rebuilt(traced.out_tree, outs)

    return applied


class Composite(WholeCall):
    """A named call; its rewrites are ordinary calls, because the name does not describe a derivative or a batch."""

    name = "composite"

    def lower(
        self, ctx: Any, *operands: Any, jaxpr: Jaxpr, name: str, version: int, attributes: Attributes, **_: Any
    ) -> Any:
        written = ", ".join(f"{json.dumps(key)} = {_in_mlir(ctx, value)}" for key, value in attributes)
        return ctx.many(
            "stablehlo.composite",
            operands,
            [ctx.mlir.type(a) for a in jaxpr.out_avals],
            name=json.dumps(name),
            version=f"{version} : i32",
            composite_attributes=f"{{{written}}}",
            decomposition=ctx.function(jaxpr, name),
        )


composite_p: Final = Composite()


class Frozen(NamedTuple):
    """An ndarray as a hashable value."""

    data: bytes
    dtype: np.dtype
    shape: tuple[int, ...]


def _frozen(name: str, key: str, value: Any) -> Any:
    """An attribute as a hashable value; TypeError for other types."""
    if isinstance(value, np.ndarray | np.generic):
        return Frozen(value.tobytes(), value.dtype, value.shape)
    if isinstance(value, tuple | list):
        return tuple(_frozen(name, key, v) for v in value)
    if not isinstance(value, bool | int | float | str):
        raise TypeError(
            f"composite '{name}': attribute {key} must be a number, a string, an ndarray or a tuple of these, "
            f"got {type(value).__name__}; pass arrays as positional arguments"
        )
    return value


def _in_mlir(ctx: Any, value: Any) -> str:
    if isinstance(value, Frozen):
        return str(ctx.mlir.dense(np.frombuffer(value.data, value.dtype).reshape(value.shape)))
    if isinstance(value, tuple):
        return f"[{', '.join(_in_mlir(ctx, v) for v in value)}]"
    if isinstance(value, bool | str):
        return json.dumps(value)
    return f"{value:.17e} : f64" if isinstance(value, float) else f"{value} : i64"
