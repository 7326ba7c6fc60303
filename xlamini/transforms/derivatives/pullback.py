"""The pullback of a linearized program, which all reverse-mode transformations share."""
from __future__ import annotations

from typing import Any

import numpy as np

from xlamini.core import Avals, Values, Zero, aval_of, float0, is_differentiable, is_zero
from xlamini.core.state import state
from xlamini.interpreters.linearize import Linearized
from xlamini.interpreters.transpose import transpose
from xlamini.primitives import instantiated
from xlamini.runtime import device_put_value
from xlamini.staging.run.program_cache import apply


def evaluated(lin: Linearized, inputs: Values) -> tuple[list[Any], list[Any]]:
    """The outputs and the residuals of a linearized program at these inputs."""
    if state.builder is None:
        # An input may be a residual. Copying it protects it from writes to the user's ndarray and fixes its dtype.
        inputs = [device_put_value(x, aval=aval_of(x)) if _is_mutable(x) else x for x in inputs]
    return lin.parted(inputs, apply(lin.primal, inputs))


def _is_mutable(x: Any) -> bool:
    return isinstance(x, bool | int | float | complex | np.generic | np.ndarray)


def pull_back(lin: Linearized, residuals: Values, cts: Values) -> list[Any]:
    """The cotangents (arrays or symbolic zeros) of the differentiated inputs, for one cotangent of every output."""
    nonzero_cts = [ct for ct, nz in zip(cts, lin.nonzero_out, strict=True) if nz]
    tangents = lin.tangent.in_avals[lin.num_residuals :]
    linear = (False,) * lin.num_residuals + (True,) * len(tangents)
    backward, nonzero = transpose(lin.tangent, linear, tuple(not is_zero(ct) for ct in nonzero_cts))
    outs = iter(apply(backward, [*residuals, *(ct for ct in nonzero_cts if not is_zero(ct))]))
    return [next(outs) if nz else Zero(a) for nz, a in zip(nonzero, tangents, strict=True)]


def as_gradients(avals: Avals, cts: Values) -> list[Any]:
    """A gradient for every input: instantiated zeros for symbolic ones, float0 zeros for integer inputs."""
    given = iter(cts)
    return [instantiated(next(given)) if is_differentiable(a) else np.zeros(a.shape, float0) for a in avals]
