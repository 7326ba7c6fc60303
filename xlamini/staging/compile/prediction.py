"""How long a compiled program takes on a target: what XLA's TPU compiler expects, or a bound from a GPU's peaks."""
from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple, cast

from xlamini.core.jaxpr import Jaxpr, subjaxprs
from xlamini.runtime.executable import CompiledModule
from xlamini.runtime.hlo.cycle_estimate import estimated_cycles
from xlamini.staging.compile.cost import cost_of_program, counted

if TYPE_CHECKING:
    from xlamini.runtime.targets.compile_only import CompileOnlyModule
    from xlamini.runtime.targets.topology import Target


class Prediction(NamedTuple):
    """How long a call takes, in seconds, and who says so."""

    seconds: float
    source: str


def predicted(executable: CompiledModule, jaxpr: Jaxpr) -> Prediction | None:
    """The time of a program that was compiled for a target; None for one that was not, or where nobody knows."""
    target: Target | None = getattr(executable, "target", None)
    if target is None:
        return None
    if target.clock is None:
        return _bound(cast("CompileOnlyModule", executable), jaxpr, target)
    cycles = estimated_cycles(executable.as_text())
    if not cycles:
        return None
    return Prediction(cycles / target.clock, f"XLA's estimate of {cycles} cycles, at {target.clock / 1e9:g} GHz")


def _bound(executable: CompileOnlyModule, jaxpr: Jaxpr, target: Target) -> Prediction:
    """The operations at the peak of the fastest dtype there is in them, or a device's memory traffic at full bandwidth.

    Operands count too: a product of bfloat16 with a float32 result runs as fast as one of bfloat16.
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
