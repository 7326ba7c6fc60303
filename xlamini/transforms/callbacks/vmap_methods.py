"""The argument `vmap_method`: how code that is not traced is called for a batch of examples."""
from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from xlamini.core import Dims, Values
from xlamini.primitives import expand_dims, move_batch_dim

VMAP_METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized")
ONE_BY_ONE = ("sequential", "sequential_unrolled")
"""The methods with a call for each example; the others make one call for all."""


def check_vmap_method(name: str, method: Any) -> None:
    """ValueError unless it is a method or None; `name` is the public function's."""
    if method is not None and method not in VMAP_METHODS:
        raise ValueError(f"{name}: vmap_method must be one of {', '.join(VMAP_METHODS)}, got {method!r}")


def no_method(name: str, called: Any) -> NotImplementedError:
    """The error for a batched call of `called` without a method."""
    return NotImplementedError(
        f"{name}: under vmap it must be known how to call {called}: pass vmap_method, 'sequential' to call it for each "
        "example, 'expand_dims' or 'broadcast_all' if it takes stacks of them"
    )


def stacked(method: str, operands: Values, dims: Dims, size: int) -> list[Any]:
    """The operands of one call for all examples, which are stacked along axis 0."""
    return [_STACKED[method](x, size, d) for x, d in zip(operands, dims, strict=True)]


def _with_axis(x: Any, size: int, dim: int | None) -> Any:
    return expand_dims(x, (0,)) if dim is None else move_batch_dim(x, size, dim, 0)


def _where_batched(x: Any, size: int, dim: int | None) -> Any:
    return x if dim is None else move_batch_dim(x, size, dim, 0)


def _broadcast(x: Any, size: int, dim: int | None) -> Any:
    return move_batch_dim(x, size, dim, 0)


_STACKED: Mapping[str, Callable[..., Any]] = {
    "expand_dims": _with_axis,
    "legacy_vectorized": _where_batched,
    "broadcast_all": _broadcast,
}
