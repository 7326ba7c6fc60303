"""The primitive `pallas_call`: a kernel on its operands.

It means a scan over the grid (as_scan.py), which gives its derivatives, and is how platforms without kernels compute
it. A GPU and a TPU run the kernel itself; under checks it runs in Python (check/).
"""
from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from typing import Any, Final

from xlamini.core import Avals, Axis, Dims, Jaxpr, Params, Primitive, ShapedArray, Values, is_zero
from xlamini.core.errors.frames import user_stacklevel
from xlamini.core.program.form import Form, Platform
from xlamini.core.program.kernels import Kernel
from xlamini.core.program.primitive import Cost
from xlamini.core.tracing.state import state
from xlamini.interpreters.evaluate import evaluate
from xlamini.interpreters.expand import expand
from xlamini.interpreters.physical import physical
from xlamini.lowering.gpu import is_gpu_platform
from xlamini.runtime.devices.platforms import default_backend
from xlamini.staging.call.call import jit_p
from xlamini.staging.call.call_rules import Run, call_jvp, call_linearize, call_partial_eval, call_transpose
from xlamini.staging.call.higher_order import cost_of
from xlamini.transforms.pallas.as_scan import as_scan
from xlamini.transforms.pallas.batch import batched_call
from xlamini.transforms.pallas.check.call import checked_later, checked_now, is_checked
from xlamini.transforms.pallas.forward import has_forward, pushed_forward


class PallasCall(Primitive):
    """The results of a kernel; operands are the prefetched scalars, then the arrays."""

    name = "pallas_call"
    multiple_results = True

    def bind(self, *operands: Any, kernel: Kernel) -> Any:
        """A kernel under checks runs at once, in Python, where its operands are known."""
        if state.builder is None and is_checked(kernel):
            return checked_now(kernel, operands)
        return super().bind(*operands, kernel=kernel)

    def shape_rule(self, *avals: ShapedArray, kernel: Kernel) -> Avals:
        return kernel.out_avals

    def jvp(self, primals: Values, tangents: Values, *, kernel: Kernel) -> Any:
        has_blocks = all(map(is_zero, tangents[: kernel.num_prefetch]))  # no block says where those are
        if has_blocks and has_forward(kernel.jaxpr):
            return pushed_forward(self.bind, kernel, primals, tangents)
        outs, out_tangents = call_jvp(_run(kernel), as_scan(kernel), primals, tangents)
        return self._checked(outs, primals, kernel), out_tangents

    def transpose(self, cts: Values, *operands: Any, kernel: Kernel) -> list[Any]:
        return call_transpose(_run(kernel), as_scan(kernel), cts, operands)

    def batch(self, axis: Axis, operands: Values, dims: Dims, *, kernel: Kernel) -> Any:
        return batched_call(self.bind, axis, operands, dims, kernel)

    def form(self, platform: Platform, avals: Avals, outs: Avals, params: Params) -> Form | None:
        kernel = params["kernel"]
        if _has_kernels(platform.name) and not kernel.interpret:
            return None
        if is_checked(kernel):
            return Form(lambda *operands: checked_later(kernel, operands))
        return Form(lambda *operands: evaluate(lowerable(as_scan(kernel)), operands))

    def lower(self, ctx: Any, *operands: Any, kernel: Kernel) -> Sequence[Any]:
        return ctx.call_kernel(_expanded(kernel), operands)

    def cost(self, *avals: ShapedArray, kernel: Kernel) -> Cost:
        said = kernel.cost_estimate
        return cost_of(as_scan(kernel)) if said is None else Cost(said.flops, said.bytes_accessed)

    def linearize(self, primals: Values, tangents: Values, *, kernel: Kernel) -> Any:
        _say_cost(kernel)
        outs, out_tangents = call_linearize(_run(kernel), as_scan(kernel), primals, tangents)
        return self._checked(outs, primals, kernel), out_tangents

    def _checked(self, outs: list[Any], operands: Values, kernel: Kernel) -> list[Any]:
        """The results of a differentiated kernel, from a run under checks if there is to be one."""
        return self.bind(*operands, kernel=kernel) if is_checked(kernel) else outs

    def partial_eval(self, unknown: Sequence[bool], operands: Values, *, kernel: Kernel) -> Any:
        return call_partial_eval(_run(kernel), as_scan(kernel), unknown, operands)

    def shown_params(self, params: Params) -> Params:
        kernel = params["kernel"]
        return {"name": kernel.name, "grid": kernel.grid, "jaxpr": kernel.jaxpr}


def _expanded(kernel: Kernel) -> Kernel:
    """The kernel with its programs in terms of primitives that are lowered."""
    blocks = [dataclasses.replace(block, index_map=lowerable(block.index_map)) for block in kernel.blocks]
    return dataclasses.replace(kernel, jaxpr=lowerable(kernel.jaxpr), blocks=tuple(blocks))


def lowerable(jaxpr: Jaxpr) -> Jaxpr:
    """The program in terms of primitives that are lowered, with random keys as their words."""
    return physical(expand(jaxpr))


def _has_kernels(platform: str) -> bool:
    """Whether a compiler of this platform takes a kernel as it is."""
    return platform == "tpu" or is_gpu_platform(platform)


def _say_cost(kernel: Kernel) -> None:
    """UserWarning where a kernel would run by itself, but its derivative will not."""
    if _has_kernels(default_backend()) and not kernel.interpret:
        text = (
            f"the derivative of the kernel {kernel.name} runs as a loop of {kernel.programs} programs; write a "
            "custom_vjp around the call, whose backward pass is a kernel too"
        )
        warnings.warn(text, UserWarning, user_stacklevel())


def _run(kernel: Kernel) -> Run:
    return lambda jaxpr, operands: jit_p.bind(*operands, jaxpr=jaxpr, name=kernel.name)


pallas_call_p: Final = PallasCall()
