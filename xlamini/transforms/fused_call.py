"""The primitive `fused_call`: an operation that some platforms compute by kernels, and all others by its program.

    fused_call(*operands, operation=operation)  ->  results

The kernel is a form (core/program/form.py): it is traced when a program is lowered for a platform that has it, and not
before. Derivatives are those of the program; an operation whose derivative has kernels too says so by `custom_vjp`.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from xlamini.core import Avals, Axis, Dims, Params, ShapedArray, Values, aval_of
from xlamini.core.program.form import Form, FusedOperation, Platform
from xlamini.core.tracing.tracer import build
from xlamini.interpreters.batch import batch
from xlamini.interpreters.evaluate import evaluate
from xlamini.primitives import move_batch_dim
from xlamini.staging import composite
from xlamini.staging.call.call import WholeCall
from xlamini.staging.call.call_rules import call_partial_eval


@composite(static=("operation",))
def fused_call(*operands: Any, operation: FusedOperation) -> list[Any]:
    """The results of an operation. A second call of a kind has the first one's jaxpr, so that they share kernels."""
    jaxpr, _ = build(lambda *inputs: list(operation.program(*inputs)), list(map(aval_of, operands)), operation.name)
    return fused_call_p.bind(*operands, jaxpr=jaxpr, name=operation.name, operation=operation)


class FusedCall(WholeCall):
    """A call of an operation's program; a batch of it is one too."""

    name = "fused_call"

    def batch(self, axis: Axis, operands: Values, dims: Dims, **params: Any) -> Any:
        batched, out_dims = batch(params["jaxpr"], axis, tuple(dims), (True,) * len(params["jaxpr"].outvars))
        mapped = MappedOperation(params["operation"], axis, tuple(dims), tuple(out_dims))
        return self.bind(*operands, **{**params, "jaxpr": batched, "operation": mapped}), out_dims

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form | None:
        kernel = params["operation"].kernel(platform, avals) if platform.runs_kernels else None
        return None if kernel is None else Form(kernel)

    def partial_eval(self, unknown: Sequence[bool], operands: Values, **params: Any) -> Any:
        """The call stays if no result is known; a known one is an ordinary call's, as a kernel needs all operands."""
        return call_partial_eval(
            self.run(params), params["jaxpr"], unknown, operands, whole=lambda: self.bind(*operands, **params)
        )

    def shown_params(self, params: Params) -> Params:
        return {name: params[name] for name in ("name", "jaxpr")}


fused_call_p: Final = FusedCall()


@dataclass(frozen=True)
class MappedOperation(FusedOperation):
    """The kernels of a batch: those of an example, mapped."""

    operation: FusedOperation
    axis: Axis
    dims: tuple[int | None, ...]
    out_dims: tuple[int | None, ...]

    def kernel(self, platform: Platform, avals: Avals) -> Any:
        """The kernel of an example, with one more axis in its grid."""
        examples = [_example(a, d) for a, d in zip(avals, self.dims, strict=True)]
        kernel = self.operation.kernel(platform, examples)
        return None if kernel is None else lambda *operands: self._mapped(kernel, examples, operands)

    def _mapped(self, kernel: Any, examples: Avals, operands: Values) -> list[Any]:
        jaxpr, _ = build(lambda *inputs: list(kernel(*inputs)), examples)
        batched, dims = batch(jaxpr, self.axis, self.dims, (True,) * len(self.out_dims))
        moves = zip(evaluate(batched, operands), dims, self.out_dims, strict=True)
        return [move_batch_dim(x, self.axis.size, dim, there or 0) for x, dim, there in moves]


def _example(aval: ShapedArray, dim: int | None) -> ShapedArray:
    shape = aval.shape if dim is None else (*aval.shape[:dim], *aval.shape[dim + 1 :])
    return ShapedArray(shape, aval.dtype)
