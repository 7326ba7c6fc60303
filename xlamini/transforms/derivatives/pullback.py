"""What all reverse-mode transformations share: pulling cotangents back through a linearized program."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xlamini.core.avals import ShapedArray
from xlamini.core.dtypes import float0
from xlamini.core.tangents import Zero, is_differentiable, is_zero
from xlamini.core.tracer import aval_of, state
from xlamini.interpreters.linearize import Linearized
from xlamini.interpreters.transpose import transpose
from xlamini.primitives.tangent_ops import instantiated
from xlamini.runtime.to_device import device_put_value
from xlamini.staging.run.program_cache import apply


def evaluated(lin: Linearized, inputs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
    """The outputs and the residuals of a linearized program at these inputs."""
    if state.builder is None:
        # A residual may be an input: it must not change with the user's ndarray, nor its type with the x64 flag.
        inputs = [device_put_value(x, aval=aval_of(x)) if _is_mutable(x) else x for x in inputs]
    return lin.parted(inputs, apply(lin.primal, inputs))


def _is_mutable(x: Any) -> bool:
    return isinstance(x, bool | int | float | complex | np.generic | np.ndarray)


def pull_back(lin: Linearized, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
    """The cotangents of the differentiated inputs, for a cotangent (or symbolic zero) of every output.

    A zero cotangent comes back as a symbolic zero.
    """
    given = [ct for ct, nz in zip(cts, lin.nonzero_out, strict=True) if nz]
    tangents = lin.tangent.in_avals[lin.num_residuals :]
    linear = (False,) * lin.num_residuals + (True,) * len(tangents)
    backward, nonzero = transpose(lin.tangent, linear, tuple(not is_zero(ct) for ct in given))
    found = iter(apply(backward, [*residuals, *(ct for ct in given if not is_zero(ct))]))
    return [next(found) if nz else Zero(a) for nz, a in zip(nonzero, tangents, strict=True)]


def as_gradients(avals: Sequence[ShapedArray], cts: Sequence[Any]) -> list[Any]:
    """A gradient for every input: zeros where the output does not depend on it, float0 for integers."""
    given = iter(cts)
    return [instantiated(next(given)) if is_differentiable(a) else np.zeros(a.shape, float0) for a in avals]
