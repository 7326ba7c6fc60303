"""Eager execution: `bind` without a trace runs one primitive as a jitted function of its own.

Each primitive caches, for each set of params, a C++ dispatched program of its single equation.
"""
from __future__ import annotations

from typing import Any, Final

import numpy as np

from xlamini.core import CallLike, Literal, OwnedMemo, Params, Primitive, Values, canonicalize_dtype, disable_jit
from xlamini.runtime import device_put_value
from xlamini.staging.run.eager import program_cache
from xlamini.staging.run.jit.jit_api import jit

operations: Final = OwnedMemo("program: single operations", 1024, "executables")
"""On each primitive, by its params."""


def evaluate_primitive(primitive: Primitive, operands: Values, params: Params) -> Any:
    """Run one equation now."""
    values = [_number(x) if type(x) is Literal else x for x in operands]
    if isinstance(primitive, CallLike):
        return program_cache.run(params[primitive.called], values)
    if primitive.higher_order:
        return program_cache.run_equation(primitive, values, params)
    key = tuple(params.items())
    run = primitive.executables.get(key)
    if run is None:
        run = operations.keep(primitive, key, _program(primitive, params))
    if not disable_jit.value:
        return run(*values)
    with disable_jit(False):  # single operations are compiled even then
        return run(*values)


def _program(primitive: Primitive, params: Params) -> Any:
    def equation(*operands: Any) -> Any:
        return primitive.bind(*operands, **params)

    equation.__name__ = primitive.name
    return jit(equation)


def _number(literal: Literal) -> Any:
    """The value of a literal, as a Python number if it is weakly typed; as an array, if calls would narrow it."""
    value = literal.val
    if not isinstance(value, np.generic):
        return value
    if literal.aval.weak_type:
        return value.item()
    return value if canonicalize_dtype(value.dtype) == value.dtype else device_put_value(value, aval=literal.aval)
