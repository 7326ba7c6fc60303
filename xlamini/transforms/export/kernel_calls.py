"""The check of the kernels that a file of an unknown maker calls: only calls that this library would write itself.

A kernel trusts its caller: with results of other sizes than its operands ask for, it writes outside of their memory.
What fits a kernel is said once, where it is called: in the `lower` of a primitive. So a call in a file must be equal to
one that a primitive writes for operands of these types.
"""
from __future__ import annotations

import importlib
import pkgutil
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np

from xlamini.core import Avals, Params, ShapedArray
from xlamini.core.caching.memo import Memo
from xlamini.core.program.bindable import primitives
from xlamini.core.program.form import Platform
from xlamini.core.program.primitive import Primitive
from xlamini.core.tracing.tracer import build
from xlamini.lowering.mlir import element_type_text
from xlamini.lowering.module import lower_jaxpr
from xlamini.lowering.specialize import specialize
from xlamini.primitives import linalg
from xlamini.primitives.linalg.stacks import MatrixOperation
from xlamini.runtime.files.module_reader import Call, calls_of

_DTYPES = {element_type_text(t): t for t in map(np.dtype, "float32 float64 complex64 complex128 int32".split())}
"""The dtypes that kernels take."""
_TYPE = re.compile(r"tensor<((?:\d+x)*)(.+)>")

known: Final = Memo("export: calls of kernels that were checked", 512)
"""Whether a call is one that a primitive writes, by its text."""


def refused(calls: Sequence[Call]) -> list[str]:
    """The names of the kernels that are called in a way in which no primitive calls them."""
    return [call[0] for call in calls if not known.get_or_make(repr(call), lambda call=call: _is_written(call))]


def _is_written(call: Call) -> bool:
    target, operands, results, _ = call
    ins, outs = _avals(operands), _avals(results)
    if ins is None or outs is None:
        return False
    platform = "cpu" if target.startswith("lapack_") else "cuda" if target.startswith("cu") else "tpu"
    return any(call in _written(*caller, platform) for caller in _callers(target, ins, outs))


def _avals(types: Sequence[str]) -> Avals | None:
    """The types of arrays that MLIR writes so; None if one is of a dtype that no kernel takes."""
    found = [_TYPE.fullmatch(text) for text in types]
    if any(each is None or each[2] not in _DTYPES for each in found):
        return None
    return [ShapedArray(tuple(map(int, each[1].split("x")[:-1])), _DTYPES[each[2]]) for each in found if each]


def _callers(target: str, ins: Avals, outs: Avals) -> Iterator[tuple[Primitive, Avals, Params]]:
    """The primitives, operands and params whose `lower` may call the target with these types."""
    for primitive in _operations():
        if any(part in target for part in primitive.kernels):
            try:
                yield from ((primitive, *pair) for pair in primitive.callers(ins, outs))
            except (IndexError, ValueError):  # a number or rank of operands that it has not
                continue


def _operations() -> list[MatrixOperation]:
    """The primitives that call kernels."""
    for module in pkgutil.iter_modules(linalg.__path__):
        importlib.import_module(f"{linalg.__name__}.{module.name}")
    return [p for p in primitives if isinstance(p, MatrixOperation)]


def _written(primitive: Primitive, avals: Avals, params: Params, platform: str) -> list[Call]:
    """The calls that a primitive writes; none if it does not take such operands or params."""

    def run(*operands: Any) -> Sequence[Any]:
        outs = primitive.bind(*operands, **params)
        return outs if primitive.multiple_results else [outs]

    try:
        jaxpr, _ = build(run, avals, primitive.name)
        return calls_of(lower_jaxpr(specialize(jaxpr, (Platform(platform),)), primitive.name, platform).module)
    except (NotImplementedError, TypeError, ValueError):
        return []
