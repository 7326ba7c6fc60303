"""The primitive `fused_call`: an operation that some platforms compute by one kernel, and all others by its program.

    fused_call(operation, *operands)  ->  results

The kernel is a form (core/program/form.py): it is traced when a program is lowered for a platform that has it, and not
before. Derivatives are those of the program; an operation whose derivative is a kernel too says so by `custom_vjp`.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from xlamini.core import Avals, Axis, Dims, Jaxpr, Params, ShapedArray, Values, aval_of, memoised
from xlamini.core.flags.config import trace_context_key
from xlamini.core.program.form import Form, Platform
from xlamini.core.tracing.tracer import build
from xlamini.interpreters.batch import batch
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.partial_eval import partial_eval
from xlamini.primitives import move_batch_dim
from xlamini.staging.call.call import Call, jit_p
from xlamini.staging.call.call_rules import Run, call_partial_eval

Kernel = Callable[..., Sequence[Any]]


class Kernels(Protocol):
    """Where an operation has kernels; it is hashable, as what is made for it is memoised."""

    def kernel(self, platform: Platform, avals: Avals) -> Kernel | None:
        """The function of the operands by which a platform computes the results; None if the program is as good."""


class Operation(Kernels, Protocol):
    """An operation: its name, its program, and its kernels."""

    name: str

    def program(self, *operands: Any) -> Sequence[Any]:
        """The results, by operations that every platform has."""


def fused_call(operation: Operation, *operands: Any) -> list[Any]:
    """The results of an operation."""
    jaxpr = _program(operation, tuple(map(aval_of, operands)), trace_context_key())
    return fused_call_p.bind(*operands, jaxpr=jaxpr, name=operation.name, kernels=operation)


@memoised("jaxpr: programs of fused calls", 256)
def _program(operation: Operation, types: Avals, flags: Any) -> Jaxpr:
    return build(lambda *operands: list(operation.program(*operands)), types, operation.name)[0]


class FusedCall(Call):
    """A call of a jaxpr with kernels; what rewrites derive from it are ordinary calls, but for a batch."""

    name = "fused_call"
    shares_names = False

    def batch(
        self, axis: Axis, operands: Values, dims: Dims, *, jaxpr: Jaxpr, kernels: Kernels, **params: Any
    ) -> Any:
        batched, out_dims = batch(jaxpr, axis, tuple(dims), (True,) * len(jaxpr.outvars))
        mapped = MappedKernels(kernels, axis, tuple(dims), out_dims)
        return self.bind(*operands, jaxpr=batched, kernels=mapped, **params), out_dims

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form | None:
        kernel = params["kernels"].kernel(platform, avals) if platform.runs_kernels else None
        return None if kernel is None else Form(kernel)

    def dce(self, used: Sequence[bool], params: Params) -> None:
        """A kernel gives all results."""

    def partial_eval(self, unknown: Sequence[bool], operands: Values, *, jaxpr: Jaxpr, **params: Any) -> Any:
        """It stays whole, unless some results are known without the others."""
        if all(partial_eval(jaxpr, tuple(unknown)).unknown_out):
            return self.bind(*operands, jaxpr=jaxpr, **params)
        return call_partial_eval(self.run(params), jaxpr, unknown, operands)

    def run(self, params: Params) -> Run:
        return lambda jaxpr, operands: jit_p.bind(*operands, jaxpr=jaxpr, name=params["name"])

    def shown_params(self, params: Params) -> Params:
        return {name: value for name, value in super().shown_params(params).items() if name != "kernels"}


fused_call_p = FusedCall()


@dataclass(frozen=True)
class MappedKernels:
    """The kernels of a batch: those of an example, mapped."""

    kernels: Kernels
    axis: Axis
    dims: tuple[int | None, ...]
    out_dims: tuple[int | None, ...]

    def kernel(self, platform: Platform, avals: Avals) -> Kernel | None:
        """The kernel of an example, with one more axis in its grid."""
        examples = [_example(a, d) for a, d in zip(avals, self.dims, strict=True)]
        kernel = self.kernels.kernel(platform, examples)
        return None if kernel is None else lambda *operands: self._mapped(kernel, examples, operands)

    def _mapped(self, kernel: Kernel, examples: Avals, operands: Values) -> list[Any]:
        jaxpr, _ = build(lambda *inputs: list(kernel(*inputs)), examples)
        batched, dims = batch(jaxpr, self.axis, self.dims, (True,) * len(self.out_dims))
        outs = evaluate(batched, operands)
        return [
            move_batch_dim(x, self.axis.size, dim, there or 0)
            for x, dim, there in zip(outs, dims, self.out_dims, strict=True)
        ]


def _example(aval: ShapedArray, dim: int | None) -> ShapedArray:
    shape = aval.shape if dim is None else (*aval.shape[:dim], *aval.shape[dim + 1 :])
    return ShapedArray(shape, aval.dtype)
