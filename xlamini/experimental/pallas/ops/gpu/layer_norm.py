"""The norm of layers: `layer_norm`."""
from __future__ import annotations

from typing import Any

from xlamini.nn.kernels.norms import Norm
from xlamini.nn.norms import of_rows

__all__ = ["layer_norm"]


def __dir__() -> list[str]:
    return sorted(__all__)


def layer_norm(
    x: Any,
    weight: Any,
    bias: Any,
    num_warps: int | None = None,
    num_stages: int | None = 3,
    eps: float = 1e-5,
    backward_pass_impl: str = "triton",
    interpret: bool = False,
    *,
    residual: Any = None,
) -> Any:
    """`(x - mean(x)) / sqrt(var(x) + eps) * weight + bias`, over the last axis of `x`.

    Args:
      x: of shape (..., features); sums are in float32 or wider.
      weight, bias: of shape (features,), or None.
      residual: added to `x` first; then the sum is returned too, as a pair. JAX has no such argument.
      num_warps, num_stages, backward_pass_impl, interpret: accepted, and ignored.

    Returns an array of the shape and dtype of `x`. ShapeError for arrays that do not fit.
    Source: Ba et al., "Layer Normalization" (2016).

    >>> layer_norm(jnp.array([[3.0, 4.0]]), jnp.ones(2), None).shape
    (1, 2)
    """
    return of_rows("layer_norm", Norm(True, float(eps)), x, weight, bias, residual)
