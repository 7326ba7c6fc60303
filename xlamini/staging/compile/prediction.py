"""Predicted run time on a target: the estimate of XLA's TPU compiler, or a roofline bound for a GPU."""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, cast

from xlamini.core import Jaxpr, subjaxprs
from xlamini.runtime.execution.executable import CompiledModule
from xlamini.runtime.hlo.cycle_estimate import estimated_cycles
from xlamini.staging.compile.cost import cost_of_program, counted

if TYPE_CHECKING:
    from xlamini.runtime.targets.compile_only import CompileOnlyModule
    from xlamini.runtime.targets.topology import Target


class Prediction(NamedTuple):
    """The run time of a call in seconds, and the source of the prediction.

    >>> Prediction(seconds=8e-6, source="XLA's estimate of 12000 cycles, at 1.5 GHz")
    Prediction(seconds=8e-06, source="XLA's estimate of 12000 cycles, at 1.5 GHz")
    >>> xlamini.jit(jnp.sin).lower(1.0).compile().prediction() is None  # it is for the device that is here
    True
    """

    seconds: float
    source: str


def predicted(executable: CompiledModule, jaxpr: Jaxpr, text: str = "") -> Prediction | None:
    """The predicted run time on a target; None for a program that was not compiled for one, or without an estimate.

    `text` is the optimized HLO, if it is there already: for a large program XLA takes a while to write it.
    """
    target: Target | None = getattr(executable, "target", None)
    if target is None:
        return None
    if target.clock is None:
        return _bound(cast("CompileOnlyModule", executable), jaxpr, target)
    cycles = estimated_cycles(text or executable.as_text())
    if not cycles:
        return None
    return Prediction(cycles / target.clock, f"XLA's estimate of {cycles} cycles, at {target.clock / 1e9:g} GHz")


def _bound(executable: CompileOnlyModule, jaxpr: Jaxpr, target: Target) -> Prediction:
    """The roofline bound: the flops at the peak of the fastest dtype, or the memory traffic at full bandwidth.

    The dtypes of operands count: a product of bfloat16 operands with a float32 result runs at the bfloat16 peak.
    """
    peak = max((target.peaks[d] for d in _dtypes(jaxpr) if d in target.peaks), default=target.peaks["float32"])
    flops = counted(jaxpr)["flops"] / len(executable.devices) / peak
    moved = cost_of_program(executable, jaxpr).get("bytes accessed", 0.0) / target.bandwidth
    what = f"{flops:.3g} s of operations, {moved:.3g} s of memory traffic"
    return Prediction(max(flops, moved), f"xlamini's bound from the peaks of a {target.device_kind}: {what}")


def _dtypes(jaxpr: Jaxpr) -> Iterator[str]:
    yield from (a.dtype.name for a in jaxpr.in_avals)
    for eqn in jaxpr.eqns:
        yield from (v.aval.dtype.name for v in eqn.outvars)
        for inner in subjaxprs(eqn):
            yield from _dtypes(inner)
