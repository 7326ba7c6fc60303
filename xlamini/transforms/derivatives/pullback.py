"""The pullback of a linearized program, which all reverse-mode transformations share."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from xlamini.core import (
    Avals,
    Jaxpr,
    Literal,
    Values,
    Zero,
    aval_of,
    float0,
    is_differentiable,
    is_zero,
    once,
    unflatten,
)
from xlamini.core.caching.structure import RewriteRule
from xlamini.core.tracing.state import state
from xlamini.interpreters.dce import dce
from xlamini.interpreters.linearize import Linearized
from xlamini.interpreters.transpose import reads_cotangents, transpose, transpose_at
from xlamini.primitives import instantiated
from xlamini.runtime import device_put_value
from xlamini.staging import chosen, store
from xlamini.staging.run.eager.program_cache import apply
from xlamini.staging.trace.tracing import visible


def evaluated(lin: Linearized, inputs: Values) -> tuple[list[Any], list[Any]]:
    """The outputs and the residuals of a linearized program at these inputs."""
    if state.builder is None:
        # An input may be a residual. Copying it protects it from writes to the user's ndarray and fixes its dtype.
        inputs = [device_put_value(x, aval=aval_of(x)) if _is_mutable(x) else x for x in inputs]
    return lin.split_outputs(inputs, apply(lin.primal, inputs))


def _is_mutable(x: Any) -> bool:
    return isinstance(x, bool | int | float | complex | np.generic | np.ndarray)


def pull_back(
    lin: Linearized, residuals: Values, cts: Values, wanted: Sequence[bool] | None = None
) -> list[Any]:
    """The cotangents (arrays or symbolic zeros) of the differentiated inputs, for one cotangent of every output.

    Those that are not `wanted` are not computed, and are zeros.
    """
    nonzero_cts = [ct for ct, nz in zip(cts, lin.nonzero_out, strict=True) if nz]
    tangents = lin.tangent.in_avals[lin.num_residuals :]
    linear = (False,) * lin.num_residuals + (True,) * len(tangents)
    backward, nonzero = transpose(lin.tangent, linear, tuple(not is_zero(ct) for ct in nonzero_cts))
    if wanted is not None:
        backward = dce(backward, tuple(chosen(wanted, nonzero)), True)[0]
        nonzero = [nz and w for nz, w in zip(nonzero, wanted, strict=True)]
    outs = iter(apply(backward, [*residuals, *(ct for ct in nonzero_cts if not is_zero(ct))]))
    return [next(outs) if nz else Zero(a) for nz, a in zip(nonzero, tangents, strict=True)]


def pull_back_at(
    lin: Linearized, residuals: Values, cts: Values, wanted: Sequence[bool] | None = None
) -> list[Any]:
    """Like `pull_back`, where backward rules of the user's may write refs, and outside of traced functions take arrays.

    There the pass runs in parts, of which each ends where such a rule takes its cotangents.
    """
    written: list[Any] = []
    dense = [ct for ct, nz in zip(cts, lin.nonzero_out, strict=True) if nz and not is_zero(ct)]
    tangents = lin.tangent.in_avals[lin.num_residuals :]
    linear = (False,) * lin.num_residuals + (True,) * len(tangents)
    given = tuple(not is_zero(ct) for ct, nz in zip(cts, lin.nonzero_out, strict=True) if nz)
    operands = visible((*residuals, *dense))
    values = operands if state.builder is None else None
    backward, nonzero = transpose_at(values, lin.tangent, linear, given, (), written)
    outs = iter(apply(dce(backward, (True,) * len(backward.outvars), True)[0], operands))
    found = [next(outs) if nz else Zero(a) for nz, a in zip(nonzero, tangents, strict=True)]
    store(tuple(written), list(outs))
    return [ct if wanted is None or w else Zero(a) for ct, w, a in zip(found, wanted or nonzero, tangents, strict=True)]


@once
def has_rules(jaxpr: Jaxpr) -> bool:
    """Whether there are rules of the user's among the equations, so that the pullback may have to run in place."""
    return any(isinstance(p, RewriteRule) and not p.is_fixed for eqn in jaxpr.eqns for p in eqn.params.values())


def runs_in_place(lin: Linearized) -> bool:
    """Whether backward rules of the user's run in each pullback: they take arrays, or write refs, or may read values.
    """
    rules = [eqn.params.get("bwd") for eqn in lin.tangent.eqns]
    reading = state.builder is None and any(getattr(bwd, "reads_values", False) for bwd in rules)
    late = any(map(reads_cotangents, lin.tangent.eqns))
    return reading or late or any(getattr(bwd, "cells", ()) for bwd in rules)


def as_gradients(avals: Avals, cts: Values) -> list[Any]:
    """A gradient for every input: instantiated zeros for symbolic ones, float0 zeros for integer inputs."""
    given = iter(cts)
    return [_as_value(instantiated(next(given))) if is_differentiable(a) else np.zeros(a.shape, float0) for a in avals]


def _as_value(x: Any) -> Any:
    """A gradient as an array, where zeros are a literal and nothing is traced: it may be added to a ref."""
    return device_put_value(x.val, aval=x.aval) if type(x) is Literal and state.builder is None else x


def nonzero_outputs(lin: Linearized, out_tree: Any) -> Any:
    """Which outputs have a tangent: bools, in the structure of the output."""
    return unflatten(out_tree, list(lin.nonzero_out[: out_tree.num_leaves]))
