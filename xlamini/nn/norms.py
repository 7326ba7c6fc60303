"""Norms of arrays with any axes, by kernels of rows."""
from __future__ import annotations

from typing import Any

from xlamini.core import ShapeError
from xlamini.nn.kernels.norms import Norm, Rows, norm
from xlamini.numpy.arguments import as_operand


def of_rows(what: str, how: Norm, x: Any, weight: Any, bias: Any, residual: Any) -> Any:
    """The norm over the last axis; with a residual a pair, of that of the sum, and the sum.

    ShapeError, with the name `what`, for arrays that do not fit.
    """
    x, weight, bias, residual = (None if y is None else as_operand(what, y) for y in (x, weight, bias, residual))
    features = x.shape[-1:]
    for name, y, shape in (("weight", weight, features), ("bias", bias, features), ("residual", residual, x.shape)):
        if y is not None and y.shape != shape:
            raise ShapeError(f"{what}: {name} must have shape {shape}, for x of {x.shape}; got {y.shape}")
    rows = [None if y is None else y.reshape(-1, *features) for y in (x, residual, weight, bias)]
    y, total = norm(how, Rows(*rows))
    return y.reshape(x.shape) if total is None else (y.reshape(x.shape), total.reshape(x.shape))
