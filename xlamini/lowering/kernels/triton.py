"""Kernels for GPUs, in Triton's dialect: the context of their lowering, with a rule for each StableHLO operation."""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xlamini.core import Equation
from xlamini.core.program.ref_parts import Part
from xlamini.lowering.context import Value
from xlamini.lowering.kernels.arith import ELEMENTWISE
from xlamini.lowering.kernels.context import KernelContext
from xlamini.lowering.kernels.control_flow import CONTROL_FLOW
from xlamini.lowering.kernels.triton_dialect import TritonDialect
from xlamini.lowering.kernels.triton_dot import PRODUCTS
from xlamini.lowering.kernels.triton_math import MATH
from xlamini.lowering.kernels.triton_memory import TritonRef, load, place_of, store
from xlamini.lowering.kernels.triton_reduce import REDUCTIONS
from xlamini.lowering.kernels.triton_shapes import SHAPES
from xlamini.lowering.kernels.triton_sizes import check_values


class TritonContext(KernelContext):
    """The lowering of a kernel's equations for a GPU. The values of refs' variables are `TritonRef`s."""

    mlir: TritonDialect
    rules = ELEMENTWISE | CONTROL_FLOW | SHAPES | REDUCTIONS | PRODUCTS | MATH
    target = "Triton"
    takes_arrays = True

    def load(self, ref: TritonRef, part: Part, indices: Sequence[Value]) -> Value:
        return load(self, ref, place_of(self, ref, part, indices))

    def store(self, ref: TritonRef, part: Part, indices: Sequence[Value], value: Value) -> None:
        store(self, ref, place_of(self, ref, part, indices), value)

    def _lowered(self, eqn: Equation, inputs: list[Any]) -> Sequence[Value]:
        check_values(eqn)
        return super()._lowered(eqn, inputs)
